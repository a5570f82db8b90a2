// The EAGLE-3 head (Li et al. 2025): a layer with a norm and an output matrix of its own, which guesses the token after the next. It
// reads the token's embedding e and a hidden state g of the token before.
// - First guess: g = W [low, mid, high], where low, mid and high are the inputs of three layers of the model (DraftHeadSpec::features),
//   and W is a matrix of the head.
// - Further guesses: g is the head's own output.
//
// Queries, keys and values are computed from [norm(e), norm(g)]. The layer adds its outputs to g (or to norm(g), see HeadResidual). The
// output matrix may lack the less frequent tokens.
#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"
#include "model/draft_heads.hpp"
#include "model/heads/eagle_layer.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace eagle3 {

constexpr TensorTable kTensors =
    TensorTable{}
        .required(Role::eagle_features, Role::mtp_token_norm, Role::mtp_hidden_norm, Role::eagle_q, Role::eagle_k, Role::eagle_v, Role::attn_output,
                  Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down, Role::mtp_output_norm)
        .optional(Role::mtp_token_embd, Role::mtp_output);

const backend::Matrix& embeddings_of(const Pass& pass, const Layer& head) {
  const backend::Matrix* own = head.weights.matrix(Role::mtp_token_embd);
  return own != nullptr ? *own : *pass.model.weights.matrix(Role::token_embd);
}

// Adds (part of W) x (input of `layer`) to Act::features, if W has a part for this layer. The product of the first part begins the sum.
Status watch(const Pass& pass, std::uint32_t layer) {
  constexpr std::array kParts{Role::eagle_low_in, Role::eagle_mid_in, Role::eagle_high_in};
  const auto& features = pass.model.spec.draft_heads.features;
  const Weights& w = pass.model.layer(pass.model.spec.n_layers()).weights;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (features[i] != layer) continue;
    const backend::Matrix& part = *w.matrix(kParts[i]);
    TESSERA_TRY_STATUS(i == 0 ? pass.backend.linear(part, Act::x, Act::features)
                              : pass.backend.linear_residual(part, nullptr, Act::x, Act::linear, Act::features));
  }
  return {};
}

// Computes queries, keys and values, and writes keys and values to the pages. On entry Act::h2 has the tokens' embeddings, and Act::h the
// hidden states g. On return Act::x has the vector to which the layer adds its outputs: g or norm(g).
Status attend_to(const Pass& pass, const Layer& head) {
  backend::Backend& b = pass.backend;
  const Weights& w = head.weights;
  const std::uint64_t width = pass.model.spec.d_model;
  const bool adds_to_normed = pass.model.spec.draft_heads.residual == HeadResidual::normed;
  if (!adds_to_normed) TESSERA_TRY_STATUS(b.take_columns(Act::h, 0, width, Act::x));
  TESSERA_TRY_STATUS(b.norm(*eagle_norm_of(pass, w, Role::mtp_token_norm), Act::h2, Act::h2));
  TESSERA_TRY_STATUS(b.norm(*eagle_norm_of(pass, w, Role::mtp_hidden_norm), Act::h, Act::h));
  if (adds_to_normed) TESSERA_TRY_STATUS(b.take_columns(Act::h, 0, width, Act::x));
  struct Product {
    Role token, hidden;
    Act out;
  };
  for (const Product part : {Product{Role::eagle_q_token, Role::eagle_q_hidden, Act::q}, Product{Role::eagle_k_token, Role::eagle_k_hidden, Act::k},
                          Product{Role::eagle_v_token, Role::eagle_v_hidden, Act::v}}) {
    TESSERA_TRY_STATUS(b.linear(*w.matrix(part.hidden), Act::h, part.out));
    TESSERA_TRY_STATUS(b.linear_residual(*w.matrix(part.token), nullptr, Act::h2, Act::attn, part.out));
  }
  return b.rope_append({.layer = head.index,
                        .n_heads = head.spec.n_heads,
                        .n_kv_heads = head.spec.n_kv_heads,
                        .eps = pass.model.spec.draft_heads.norm_eps,
                        .rope = head.spec.rope},
                       Act::q, Act::k, Act::v);
}

Status remember(const Pass& pass) {
  backend::Backend& b = pass.backend;
  const Layer head = pass.model.layer(pass.model.spec.n_layers());
  // The last list of Step::selections, after the lists of rows with outputs, has all rows.
  TESSERA_TRY_STATUS(b.select_rows(pass.step.n_outputs, Act::features, Act::h));
  TESSERA_TRY_STATUS(shift_hidden(pass));
  TESSERA_TRY_STATUS(b.embed(embeddings_of(pass, head), 1.0f, Act::h2));
  return attend_to(pass, head);
}

// Spreads the head's logits over the model's vocabulary. On entry logit i of the head, which belongs to the model's token tokens[i], is
// in logits[i]; it moves to logits[tokens[i]]. Tokens that the head cannot guess get -inf. Precondition: `tokens` is ascending, so that
// no logit is overwritten before it has moved.
void spread(std::span<const Token> tokens, std::span<float> logits) noexcept {
  std::size_t end = logits.size();
  for (std::size_t i = tokens.size(); i-- > 0;) {
    const auto to = static_cast<std::size_t>(tokens[i]);
    const float logit = logits[i];
    for (std::size_t gap = to + 1; gap < end; ++gap) logits[gap] = -std::numeric_limits<float>::infinity();
    logits[to] = logit;
    end = to;
  }
  for (std::size_t gap = 0; gap < end; ++gap) logits[gap] = -std::numeric_limits<float>::infinity();
}

Status guess(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const Model& model = pass.model;
  const Layer stored = model.layer(model.spec.n_layers());
  const LayerSpec spec = spec_of_guess(model, row.position);
  const Layer head{stored.index, spec, stored.weights};
  const backend::Matrix& embeddings = embeddings_of(pass, head);
  TESSERA_TRY_STATUS(b.embed(embeddings, 1.0f, Act::h));  // the hidden state (RowTable::embedding)
  TESSERA_TRY_STATUS(b.gather(embeddings, 1.0f, Act::h2));
  TESSERA_TRY_STATUS(attend_to(pass, head));
  TESSERA_TRY_STATUS(finish_eagle_layer(pass, head));
  TESSERA_TRY_STATUS(b.read(Act::x, 0, hidden));
  TESSERA_TRY_STATUS(b.norm(*eagle_norm_of(pass, head.weights, Role::mtp_output_norm), Act::x, Act::h));
  const backend::Matrix* output = head.weights.matrix(Role::mtp_output);
  if (output == nullptr) return read_target_logits(pass, Act::h, logits);
  TESSERA_TRY_STATUS(b.linear(*output, Act::h, Act::logits));
  if (model.guessed_tokens.empty()) return b.read(Act::logits, 0, logits);
  TESSERA_TRY_STATUS(b.read(Act::logits, 0, logits.first(model.guessed_tokens.size())));
  spread(model.guessed_tokens, logits);
  return {};
}

void make_room(const ModelSpec& spec, backend::WorkspaceShape& shape) {
  make_room_for_eagle_layer(spec, shape);
  widen(shape, Act::features, spec.d_model);
  // Act::attn is scratch for the products that compute queries, keys and values.
  const LayerSpec& layer = spec.draft_heads.layers.front();
  widen(shape, Act::attn, std::max({std::uint64_t{layer.n_heads} * layer.key_dim, std::uint64_t{layer.n_kv_heads} * layer.key_dim,
                                    std::uint64_t{layer.n_kv_heads} * layer.value_dim}));
}

}  // namespace eagle3
}  // namespace

constinit const DraftHeads kEagle3{.name = "EAGLE-3 head",
                                   .reads = RowsRead::all,
                                   .kept = HiddenKept::in_pages,
                                   .tensors = &eagle3::kTensors,
                                   .watch = &eagle3::watch,
                                   .remember = &eagle3::remember,
                                   .guess = &eagle3::guess,
                                   .attention = &attention_of_guess,
                                   .make_room = &eagle3::make_room};

}  // namespace tessera::detail
