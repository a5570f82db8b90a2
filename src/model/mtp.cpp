// The MTP head: a layer behind the last one, which guesses the token after the next (DeepSeek-AI 2024).
#include <array>

#include "model/blocks/blocks.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

// A row's keys and values are made of its token and of the hidden state before it.
Status remember_for_mtp(const Pass& pass) {
  const Layer head = pass.model.layer(pass.model.spec.n_layers());
  TESSERA_TRY_STATUS(mtp_inputs(pass, head));
  TESSERA_TRY(const Inputs in, inputs_of(pass, head));
  return mixer_of(head.spec).remember(pass, head, in.mixer);
}

namespace {

// Computes the MTP head's guess for the step's one row. Called between begin() and end().
Status guess(const Pass& pass, const MtpRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Layer stored = model.layer(model.spec.n_layers());
  // Position 0 has no hidden state before it: a window that ends at position 1 hides it.
  LayerSpec spec = stored.spec;
  if (spec.window == 0 || spec.window > row.position) spec.window = static_cast<std::uint32_t>(row.position);
  const Layer head{stored.index, spec, stored.weights};
  TESSERA_TRY_STATUS(mtp_inputs_of_guess(pass, head));
  TESSERA_TRY_STATUS(run_layer(pass, head));
  auto norm = norm_of(pass, head.weights, Role::mtp_output_norm);
  if (!norm) norm = norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias);
  TESSERA_TRY_STATUS(b.norm(*norm, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.read(Act::h, 0, hidden));
  const backend::Matrix* output = head.weights.matrix(Role::mtp_output);
  TESSERA_TRY_STATUS(b.linear(output != nullptr ? *output : *output_of(model), Act::h, Act::logits));
  TESSERA_TRY_STATUS(finish_logits(pass));
  return b.read(Act::logits, 0, logits);
}

}  // namespace

Status mtp_forward(const Model& model, backend::Backend& b, const MtpRow& row, std::span<float> logits, std::span<float> hidden,
                   const std::stop_token& stop) {
  if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped before the MTP head; the session is as it was");
  const backend::RowTable table{.embedding = row.hidden, .token = row.token, .position = row.position};
  const Step step{.rows = {&table, 1}, .sequences = {&row.kv, 1}, .outputs = {}, .wanted = {}};
  return between(model, b, step, [&](const Pass& pass) { return guess(pass, row, logits, hidden); });
}

}  // namespace tessera::detail
