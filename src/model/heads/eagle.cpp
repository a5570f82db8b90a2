// The EAGLE head (Li et al. 2024; EAGLE-1, and EAGLE-2, which has the same weights): a decoder layer that guesses the model's hidden
// state (the output of the final norm) of a token, so that the model's output matrix can guess the token after it. With the token's
// embedding e and the hidden state h of the token before, the layer's input is W [e, h] + b. There is no norm before the layer's
// attention. The layer's output is the guess.
#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/heads/eagle_layer.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace eagle {

constexpr TensorTable kTensors =
    TensorTable{}
        .required(Role::mtp_in, Role::attn_q, Role::attn_k, Role::attn_v, Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::eagle_in_bias, Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias);

// Computes Act::x = W [e, h] + b, where Act::h2 has the tokens' embeddings e and Act::h the hidden states h.
Status join(const Pass& pass, const Layer& head) {
  const Weights& w = head.weights;
  TESSERA_TRY_STATUS(pass.backend.linear_bias(*w.matrix(Role::mtp_hidden_in), w.vector(Role::eagle_in_bias), Act::h, Act::x));
  return pass.backend.linear_residual(*w.matrix(Role::mtp_token_in), nullptr, Act::h2, Act::linear, Act::x);
}

Status remember(const Pass& pass) {
  backend::Backend& b = pass.backend;
  const Layer head = pass.model.layer(pass.model.spec.n_layers());
  TESSERA_TRY_STATUS(b.select_rows(pass.step.n_outputs, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, pass.model.weights, Role::output_norm, Role::output_norm_bias), Act::h, Act::h));
  TESSERA_TRY_STATUS(shift_hidden(pass));
  TESSERA_TRY_STATUS(b.embed(*pass.model.weights.matrix(Role::token_embd), 1.0f, Act::h2));
  TESSERA_TRY_STATUS(join(pass, head));
  return mixer_of(head.spec).remember(pass, head, {.norm = {}, .act = Act::x});
}

Status guess(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Layer stored = model.layer(model.spec.n_layers());
  const LayerSpec spec = spec_of_guess(model, row.position);
  const Layer head{stored.index, spec, stored.weights};
  const backend::Matrix& embeddings = *model.weights.matrix(Role::token_embd);
  TESSERA_TRY_STATUS(b.embed(embeddings, 1.0f, Act::h));  // the hidden state (RowTable::embedding)
  TESSERA_TRY_STATUS(b.gather(embeddings, 1.0f, Act::h2));
  TESSERA_TRY_STATUS(join(pass, head));
  TESSERA_TRY_STATUS(mixer_of(spec).remember(pass, head, {.norm = {}, .act = Act::x}));
  TESSERA_TRY_STATUS(finish_eagle_layer(pass, head));
  TESSERA_TRY_STATUS(b.read(Act::x, 0, hidden));
  return read_target_logits(pass, Act::x, logits);
}

}  // namespace eagle
}  // namespace

constinit const DraftHeads kEagle{.name = "EAGLE head",
                                  .reads = RowsRead::all,
                                  .kept = HiddenKept::in_pages,
                                  .tensors = &eagle::kTensors,
                                  .remember = &eagle::remember,
                                  .guess = &eagle::guess,
                                  .attention = &attention_of_guess,
                                  .make_room = &make_room_for_eagle_layer};

}  // namespace tessera::detail
