// Draft heads: weights after a model's last layer that guess the tokens after the next one (DraftHeadSpec). Each kind of heads has a
// file, which defines one constant of type DraftHeads. The engine and the drafters only call this constant and know no kind. To add a
// kind: a value of DraftHeadKind, a file, and a line in the list below.
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

namespace tessera::detail {

struct Model;
struct Pass;

// Which rows of a step the heads get after the last layer. (The step must be one of the whole model.)
enum class RowsRead : std::uint8_t {
  wanted,  // only rows whose output is wanted; the last layer drops the others
  all,     // all rows, with their hidden states in Act::x, because the heads keep keys and values of each row
};

// The input of one guess: the token at `position` (at least 1), and the hidden state of the token before it.
struct HeadRow {
  KvView kv;  // the row's keys and values are written here; the heads attend to positions 1 to `position`
  std::uint64_t position = 0;
  Token token = 0;
  const float* hidden = nullptr;  // [d_model]
};

// The functions of one kind of draft heads.
struct DraftHeads {
  std::string_view name;  // as messages call it
  RowsRead reads;
  // Called after the last layer of a step of the whole model. Keeps what later guesses need of the step's rows (such as keys and values),
  // and writes the hidden state of each sequence's last row to hidden_layer().
  Status (*remember)(const Pass& pass);
  // Computes one guess, in a step of one row. Writes `logits`  [vocab], from which the token after the row's token is guessed, and
  // `hidden` [d_model], the hidden state for guessing the token after that. `hidden` may be the same memory as row.hidden.
  Status (*guess)(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden);
  // Returns the attention that a guess at `position` computes, which begin() plans; nullptr: a guess computes none.
  backend::AttentionShape (*attention)(const Model& model, std::uint64_t position) = nullptr;
};

extern const DraftHeads kMtp;  // DeepSeek-AI 2024: one more layer after the last one

// Returns the functions of the model's draft heads; nullptr if it has none.
[[nodiscard]] inline const DraftHeads* draft_heads_of(const ModelSpec& spec) noexcept {
  static constexpr std::array<const DraftHeads*, 2> kKinds{nullptr, &kMtp};  // in the order of DraftHeadKind
  return kKinds[static_cast<std::size_t>(spec.draft_heads.kind)];
}

// Returns whether the model has draft heads that need all rows of each step (RowsRead::all).
[[nodiscard]] inline bool heads_read_all_rows(const ModelSpec& spec) noexcept {
  const DraftHeads* heads = draft_heads_of(spec);
  return heads != nullptr && heads->reads == RowsRead::all;
}

// Returns the index of the KV cache's layer that keeps the hidden state of the sequence's last row, f32  [d_model]. Precondition: the
// model has draft heads.
[[nodiscard]] inline std::uint32_t hidden_layer(const ModelSpec& spec) noexcept { return spec.n_layers_with_heads(); }

// Returns the end of the range of cache layers that a session fills which computes the layers [first, last). The cache has the model's
// layers, then those of draft heads, then hidden_layer(). A session of the whole model fills all of them.
[[nodiscard]] inline std::uint32_t end_of_kept(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) noexcept {
  return spec.has_draft_heads() && first == 0 && last == spec.n_layers() ? hidden_layer(spec) + 1 : last;
}

// Computes a guess (DraftHeads::guess). Precondition: the model has draft heads. Errors: cancelled; the backend's.
Status guess_by_heads(const Model& model, backend::Backend& backend, const HeadRow& row, std::span<float> logits, std::span<float> hidden,
                      const std::stop_token& stop);

}  // namespace tessera::detail
