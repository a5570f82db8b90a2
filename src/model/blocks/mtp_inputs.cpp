#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

const backend::Matrix& embeddings_of(const Pass& pass, const Layer& head) {
  const backend::Matrix* own = head.weights.matrix(Role::mtp_token_embd);
  return own != nullptr ? *own : *pass.model.weights.matrix(Role::token_embd);
}

// x = W [norm(h2), norm(h)], as two products, because h2 and h do not lie side by side.
Status join(const Pass& pass, const Layer& head) {
  backend::Backend& b = pass.backend;
  const Weights& w = head.weights;
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::mtp_token_norm), Act::h2, Act::h2));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::mtp_hidden_norm), Act::h, Act::h));
  TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::mtp_hidden_in), Act::h, Act::x));
  return b.linear_residual(*w.matrix(Role::mtp_token_in), nullptr, Act::h2, Act::linear, Act::x);
}

}  // namespace

Status mtp_inputs(const Pass& pass, const Layer& head) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Step& step = pass.step;
  TESSERA_TRY_STATUS(b.select_rows(step.n_outputs, step.rows.size(), Act::x, Act::h));  // all rows again, behind the outputs
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias), Act::h, Act::h));
  TESSERA_TRY_STATUS(b.convolve({.layer = mtp_state_layer(model.spec), .weight = model.mtp_shift}, Act::h));
  TESSERA_TRY_STATUS(b.embed(embeddings_of(pass, head), model.spec.embedding_scale, Act::h2));
  return join(pass, head);
}

Status mtp_inputs_of_guess(const Pass& pass, const Layer& head) {
  const backend::Matrix& embeddings = embeddings_of(pass, head);
  TESSERA_TRY_STATUS(pass.backend.embed(embeddings, 1.0f, Act::h));
  TESSERA_TRY_STATUS(pass.backend.gather(embeddings, pass.model.spec.embedding_scale, Act::h2));
  return join(pass, head);
}

}  // namespace tessera::detail
