// Functions that the passes over a model share: the model's own forward pass (forward.cpp) and the passes of its draft heads (heads/).
#pragma once

#include <span>

#include "core/error.hpp"
#include "model/blocks/pass.hpp"

namespace tessera::detail {

// The inputs of a layer's two halves, mixer and feed.
struct Inputs {
  Input mixer, feed;
};

// forward.cpp
// Returns the inputs of the layer's halves. If the halves run in parallel, computes the norm that they share.
[[nodiscard]] Result<Inputs> inputs_of(const Pass& pass, const Layer& layer);
// Calls remember() of the layer's mixer (MixerBlock). Does nothing if this rank does not compute the mixer.
Status remember(const Pass& pass, const Layer& layer, const Input& input);
// Calls look_back() of the layer's mixer, if this rank computes the mixer. If one rank computes the mixer for all ranks, that rank then sends
// Act::x to the others; so every rank must make this call.
Status look_back(const Pass& pass, const Layer& layer);
// Computes one layer: adds its mixer and its feed to the residual stream x.
Status run_layer(const Pass& pass, const Layer& layer);

// outputs.cpp
// Returns the matrix that computes logits: the output matrix, or else the embedding table.
[[nodiscard]] const backend::Matrix* output_of(const Model& model);
// Applies the model's scale and softcap, if it has them, to Act::logits.
Status finish_logits(const Pass& pass);
// Hands the outputs of the wanted rows to `sink`. Precondition: Act::x has only the wanted rows.
Status outputs(const Pass& pass, OutputSink& sink);

// Runs `compute` between the backend's begin() and end(). Calls end() even after an error: without it, unfinished work of the device
// could write to pages after they were freed.
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
                              .selections = step.selections,
                              .attentions = step.attentions,
                              .draws = step.draws,
                              .adapters = step.adapters}));
  TESSERA_TRY_STATUS(compute(Pass{.model = model, .backend = b, .step = step}));
  ended.done = true;
  return b.end();
}

}  // namespace tessera::detail
