// The MTP head: an additional layer after the model's last layer, which guesses the token after the next (DeepSeek-AI 2024). The head's input
// is x = W [norm(e), norm(h)], where e is the token's embedding and h the hidden state of the token before. Hidden states are taken after
// the final norm.
#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

const backend::Matrix& embeddings_of(const Pass& pass, const Layer& head) {
  const backend::Matrix* own = head.weights.matrix(Role::mtp_token_embd);
  return own != nullptr ? *own : *pass.model.weights.matrix(Role::token_embd);
}

// Computes the head's input x = W [norm(e), norm(h)], where Act::h2 has the tokens' embeddings e and Act::h the hidden states h. W is
// kept as two matrices, one for each half, because e and h are in separate activations.
Status join(const Pass& pass, const Layer& head) {
  backend::Backend& b = pass.backend;
  const Weights& w = head.weights;
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::mtp_token_norm), Act::h2, Act::h2));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::mtp_hidden_norm), Act::h, Act::h));
  TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::mtp_hidden_in), Act::h, Act::x));
  return b.linear_residual(*w.matrix(Role::mtp_token_in), nullptr, Act::h2, Act::linear, Act::x);
}

// Computes the head's input x for all rows of a step; Act::x has their residual streams. A row uses the hidden state of the row before it
// in its sequence; the first row of a sequence uses 0. Each sequence's last hidden state is kept in its hidden_layer(), for the next
// step.
Status inputs_of_step(const Pass& pass, const Layer& head) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Step& step = pass.step;
  // The last list of Step::selections, after the lists of rows with outputs, has all rows.
  TESSERA_TRY_STATUS(b.select_rows(step.n_outputs, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, model.weights, Role::output_norm, Role::output_norm_bias), Act::h, Act::h));
  TESSERA_TRY_STATUS(shift_hidden(pass));
  TESSERA_TRY_STATUS(b.embed(embeddings_of(pass, head), model.spec.embedding_scale, Act::h2));
  return join(pass, head);
}

// Computes the head's input x for a guess. RowTable::embedding of the guess's row points to the hidden state.
Status input_of_guess(const Pass& pass, const Layer& head) {
  const backend::Matrix& embeddings = embeddings_of(pass, head);
  TESSERA_TRY_STATUS(pass.backend.embed(embeddings, 1.0f, Act::h));
  TESSERA_TRY_STATUS(pass.backend.gather(embeddings, pass.model.spec.embedding_scale, Act::h2));
  return join(pass, head);
}

// Computes and keeps the head's keys and values of each row, from the row's token and from the hidden state of the row before it.
Status remember(const Pass& pass) {
  const Layer head = pass.model.layer(pass.model.spec.n_layers());
  TESSERA_TRY_STATUS(inputs_of_step(pass, head));
  TESSERA_TRY(const Inputs in, inputs_of(pass, head));
  return mixer_of(head.spec).remember(pass, head, in.mixer);
}

Status guess(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Layer stored = model.layer(model.spec.n_layers());
  const LayerSpec spec = spec_of_guess(model, row.position);
  const Layer head{stored.index, spec, stored.weights};
  TESSERA_TRY_STATUS(input_of_guess(pass, head));
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

constinit const DraftHeads kMtp{.name = "MTP head",
                                .reads = RowsRead::all,
                                .kept = HiddenKept::as_state,
                                .remember = &remember,
                                .guess = &guess,
                                .attention = &attention_of_guess};

}  // namespace tessera::detail
