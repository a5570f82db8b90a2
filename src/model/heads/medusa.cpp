// Medusa heads (Cai et al. 2024, Medusa-1). Each head guesses the token at one distance: head i (from 0) the token i + 2 places after a
// row's token. It computes the guess from the row's hidden state h after the final norm. First h passes the head's residual blocks, each
// of which computes h + silu(W h + b); then the head's output matrix gives the logits. The heads keep no keys and values, and do not read
// the tokens that other heads have guessed.
#include <algorithm>

#include "core/error.hpp"
#include "model/draft_heads.hpp"
#include "model/heads/eagle_layer.hpp"
#include "model/load/roles.hpp"
#include "model/passes.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace medusa {

// All tensors are optional here: the reader of the heads (src/heads) checks that each head has the tensors that it needs.
constexpr TensorTable kTensors = TensorTable{}.optional(Role::medusa_block, Role::medusa_block_bias, Role::medusa_output);

Status remember(const Pass& pass) {
  backend::Backend& b = pass.backend;
  // The last list of Step::selections, after the lists of rows with outputs, has all rows.
  TESSERA_TRY_STATUS(b.select_rows(pass.step.n_outputs, Act::x, Act::h));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, pass.model.weights, Role::output_norm, Role::output_norm_bias), Act::h, Act::h));
  return shift_hidden(pass);
}

// Computes h += silu(W h + b) for the layer's residual block.
Status run_block(const Pass& pass, const Weights& weights) {
  backend::Backend& b = pass.backend;
  const backend::Matrix* block = weights.matrix(Role::medusa_block);
  if (block == nullptr) return {};
  TESSERA_TRY_STATUS(b.linear_bias(*block, weights.vector(Role::medusa_block_bias), Act::h, Act::linear));
  TESSERA_TRY_STATUS(b.activate(ActivationKind::silu, Act::linear));
  return b.add(Act::linear, Act::h);
}

Status guess(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden) {
  backend::Backend& b = pass.backend;
  const ModelSpec& spec = pass.model.spec;
  const std::size_t n_blocks = spec.draft_heads.layers.size() / spec.draft_heads.most_guesses;  // blocks of each head
  const std::uint64_t head = std::min<std::uint64_t>(row.guess, spec.draft_heads.most_guesses - 1);
  TESSERA_TRY_STATUS(b.embed(*pass.model.weights.matrix(Role::token_embd), 1.0f, Act::h));  // the hidden state (RowTable::embedding)
  const backend::Matrix* output = nullptr;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const Weights& weights = pass.model.layer_weights[spec.n_layers() + head * n_blocks + i];
    TESSERA_TRY_STATUS(run_block(pass, weights));
    output = weights.matrix(Role::medusa_output);
  }
  if (hidden.data() != row.hidden) std::copy_n(row.hidden, hidden.size(), hidden.begin());
  if (output == nullptr) return read_target_logits(pass, Act::h, logits);
  TESSERA_TRY_STATUS(b.linear(*output, Act::h, Act::logits));
  return b.read(Act::logits, 0, logits);
}

}  // namespace medusa
}  // namespace

constinit const DraftHeads kMedusa{.name = "Medusa head",
                                   .reads = RowsRead::all,
                                   .kept = HiddenKept::in_pages,
                                   .tensors = &medusa::kTensors,
                                   .remember = &medusa::remember,
                                   .guess = &medusa::guess};

}  // namespace tessera::detail
