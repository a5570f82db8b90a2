// What the passes over a model share: the model's own (forward.cpp) and its MTP head's (mtp.cpp).
#pragma once

#include <span>

#include "core/error.hpp"
#include "model/blocks/pass.hpp"

namespace tessera::detail {

// What the two halves of a layer read.
struct Inputs {
  Input mixer, feed;
};

// forward.cpp
[[nodiscard]] Result<Inputs> inputs_of(const Pass& pass, const Layer& layer);
Status run_layer(const Pass& pass, const Layer& layer);

// outputs.cpp: what becomes of the residual stream behind the last layer.
// Returns the matrix that leads to the logits.
[[nodiscard]] const backend::Matrix* output_of(const Model& model);
// Scales and caps Act::logits, where the model does.
Status finish_logits(const Pass& pass);
// Hands the wanted rows' outputs to `sink`; x has these rows alone.
Status outputs(const Pass& pass, OutputSink& sink);

// mtp.cpp: all rows leave in the MTP head's pages what its guesses will see.
Status remember_for_mtp(const Pass& pass);

// Calls begin(), `compute`, and end(): also after an error, since what a device has under way would write to pages that are given
// back.
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
