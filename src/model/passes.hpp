// Functions that the passes over a model share: the model's own pass (forward.cpp) and its draft heads' (mtp.cpp).
#pragma once

#include <span>

#include "core/error.hpp"
#include "model/blocks/pass.hpp"

namespace tessera::detail {

// The inputs of a layer's two halves.
struct Inputs {
  Input mixer, feed;
};

// forward.cpp
// Returns the inputs of the layer's halves; computes the norm that parallel halves share.
[[nodiscard]] Result<Inputs> inputs_of(const Pass& pass, const Layer& layer);
// Computes the layer: x -> mixer -> feed -> x.
Status run_layer(const Pass& pass, const Layer& layer);

// outputs.cpp
// Returns the matrix that leads to the logits.
[[nodiscard]] const backend::Matrix* output_of(const Model& model);
// Scales and caps Act::logits, if the model does.
Status finish_logits(const Pass& pass);
// Hands the wanted rows' outputs to `sink`. Precondition: x has only the wanted rows.
Status outputs(const Pass& pass, OutputSink& sink);

// Calls begin(), `compute` and end(). end() is called after an error too: work that a device still runs would write to pages that are
// given back.
template <class Compute>
Status between(const Model& model, backend::Backend& b, const Step& step, Compute compute) {
  struct Ended {
    backend::Backend& b;
    bool done = false;
    ~Ended() {
      if (!done) (void)b.end();
    }
  } ended{b};
  TESSERA_TRY_STATUS(b.begin({.rows = step.rows,
                              .sequences = step.sequences,
                              .ropes = model.ropes,
                              .votes = step.votes,
                              .wanted = step.wanted,
                              .selected = step.selected}));
  TESSERA_TRY_STATUS(compute(Pass{.model = model, .backend = b, .step = step}));
  ended.done = true;
  return b.end();
}

}  // namespace tessera::detail
