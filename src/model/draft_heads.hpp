// Draft heads: weights after a model's last layer that guess the tokens after the next one (DraftHeadSpec). Each kind of heads has a
// source file, which defines one constant of type DraftHeads. The engine and the drafters call only this constant, and do not distinguish
// kinds. To add a kind: add a value of DraftHeadKind, a source file, and a line in the list below. If the heads come in a file separate
// from the model's, also add a reader in src/heads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/kv/kv_view.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"

namespace tessera::detail {

struct Model;
struct Pass;

// The rows of a step that the heads get after the last layer. (Heads get rows only in steps that compute all layers of the model.)
enum class RowsRead : std::uint8_t {
  wanted,  // only rows whose output is wanted; the last layer drops all other rows
  all,     // all rows, with their hidden states in Act::x, because the heads keep keys and values of each row
};

// The way in which a session's cache keeps the hidden states that guesses begin with (hidden_layer()).
enum class HiddenKept : std::uint8_t {
  as_state,  // only the hidden state of the sequence's last row, like the state of a recurrent layer. Takes no memory per token, but a
             // session can be truncated to checkpoints only
  in_pages,  // the hidden state of each row, like a key. A session can be truncated to any token, and drafts can branch
};

// The input of one guess: the token at `position` (at least 1), and the hidden state of the token before it.
struct HeadRow {
  KvView kv;  // the row's keys and values are written here; the heads attend to positions 1 to `position`
  std::uint64_t position = 0;
  Token token = 0;
  const float* hidden = nullptr;  // [d_model]
  std::uint64_t guess = 0;        // guesses that were made before this one, since the model's last step
};

// The functions of one kind of draft heads.
struct DraftHeads {
  std::string_view name;  // name for messages
  RowsRead reads;
  HiddenKept kept;
  // The tensors of the heads' layers; nullptr: the architecture's table has them.
  const TensorTable* tensors = nullptr;
  // Called in a step of the whole model, with the residual stream in Act::x: before each layer (`layer` is the layer's index), and after
  // the last layer (`layer` is the number of layers). nullptr: the heads need only the hidden state after the last layer.
  Status (*watch)(const Pass& pass, std::uint32_t layer) = nullptr;
  // Called after the last layer of a step of the whole model. Keeps the data of the step's rows that later guesses need (such as keys and
  // values), and writes hidden states to hidden_layer().
  Status (*remember)(const Pass& pass) = nullptr;
  // Computes one guess, in a step of one row. Writes `logits`  [vocab], the head's logits for the token after the row's token, and `hidden`
  // [d_model], the hidden state from which the next guess begins. `hidden` may be the same memory as row.hidden.
  Status (*guess)(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden) = nullptr;
  // Returns the attention that a guess at `position` computes, which begin() plans; nullptr: a guess computes none.
  backend::AttentionShape (*attention)(const Model& model, std::uint64_t position) = nullptr;
  // Makes the workspace large enough; nullptr: the heads need no more than the model's own layers.
  void (*make_room)(const ModelSpec& spec, backend::WorkspaceShape& shape) = nullptr;
};

extern const DraftHeads kMtp;     // DeepSeek-AI 2024: one more layer after the last one
extern const DraftHeads kMedusa;  // Cai et al. 2024: residual blocks and an output matrix for each further token
extern const DraftHeads kEagle;   // Li et al. 2024 (EAGLE-1, EAGLE-2): a layer that guesses the next hidden state
extern const DraftHeads kEagle3;  // Li et al. 2025: a layer that reads hidden states of three layers

// Returns the functions of the model's draft heads; nullptr if it has none.
[[nodiscard]] inline const DraftHeads* draft_heads_of(const ModelSpec& spec) noexcept {
  static constexpr std::array<const DraftHeads*, 5> kKinds{nullptr, &kMtp, &kMedusa, &kEagle, &kEagle3};  // in the order of DraftHeadKind
  return kKinds[static_cast<std::size_t>(spec.draft_heads.kind)];
}

// Returns whether the model has draft heads that need all rows of each step (RowsRead::all).
[[nodiscard]] inline bool heads_read_all_rows(const ModelSpec& spec) noexcept {
  const DraftHeads* heads = draft_heads_of(spec);
  return heads != nullptr && heads->reads == RowsRead::all;
}

// Returns whether the model has draft heads whose hidden states are kept in the way `how`.
[[nodiscard]] inline bool keeps_hidden(const ModelSpec& spec, HiddenKept how) noexcept {
  const DraftHeads* heads = draft_heads_of(spec);
  return heads != nullptr && heads->kept == how;
}

// Returns the index of the additional layer of the KV cache that keeps hidden states (f32 [d_model]), as one state or for each row
// (HiddenKept). Precondition: the model has draft heads.
[[nodiscard]] inline std::uint32_t hidden_layer(const ModelSpec& spec) noexcept { return spec.n_layers_with_heads(); }

// Returns one past the last layer of the KV cache that a session fills if it computes the model's layers [first, last). The cache has the
// model's layers, then the layers of draft heads, then hidden_layer(). A session that computes the whole model fills all layers of the
// cache. Any other session fills only [first, last).
[[nodiscard]] inline std::uint32_t end_of_kept(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) noexcept {
  return spec.has_draft_heads() && first == 0 && last == spec.n_layers() ? hidden_layer(spec) + 1 : last;
}

// Returns the spec of a head's layer for a guess at `position`. It differs from the stored spec in the window, which reaches back to
// position 1 at most: the head has no keys at position 0, because a key needs the hidden state of the token before.
[[nodiscard]] LayerSpec spec_of_guess(const Model& model, std::uint64_t position);

// Returns the attention of the heads' only layer in a guess at `position`.
[[nodiscard]] backend::AttentionShape attention_of_guess(const Model& model, std::uint64_t position);

// Shifts the hidden states in Act::h by one row, because a draft head's input is a row's token and the hidden state of the row before. So each
// row gets the hidden state of the row before it in its sequence, and the first row of a sequence gets zeros. Stores the rows' own hidden
// states in each sequence's hidden_layer(), for the rows of later steps.
Status shift_hidden(const Pass& pass);

// Computes a guess (DraftHeads::guess). Precondition: the model has draft heads. Errors: cancelled; those of the backend.
Status guess_by_heads(const Model& model, backend::Backend& backend, const HeadRow& row, std::span<float> logits, std::span<float> hidden,
                      const std::stop_token& stop);

}  // namespace tessera::detail
