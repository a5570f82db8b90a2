// Draft heads: weights behind a model's last layer that guess the tokens after the next one (DraftHeadSpec). Each kind has a file, which
// defines one constant. To add a kind: its DraftHeadKind, its file, and a line in the list below. The engine and the drafters know no kind:
// they ask the constant.
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

// The rows of a step of the whole model that go on behind the last layer.
enum class RowsRead : std::uint8_t {
  wanted,  // rows of which an output is wanted; the last layer drops the others
  all,     // all rows, whose hidden states Act::x has: the heads keep keys and values of each
};

// The row of one guess: the token at `position`, which is at least 1, and the hidden state before it.
struct HeadRow {
  KvView kv;  // takes the row's keys and values; the heads see positions 1 to `position`
  std::uint64_t position = 0;
  Token token = 0;
  const float* hidden = nullptr;  // [d_model]
};

// A kind of draft heads.
struct DraftHeads {
  std::string_view name;  // in messages
  RowsRead reads;
  // Called behind the last layer of a step of the whole model: keeps what later guesses need of its rows, and the hidden state behind
  // each sequence's last row in hidden_layer().
  Status (*remember)(const Pass& pass);
  // Computes one guess, in a step of one row. Writes the `logits` [vocab] of the token after the row's token, and the hidden state `hidden`
  // [d_model] for a guess of the token after that. `hidden` may be row.hidden.
  Status (*guess)(const Pass& pass, const HeadRow& row, std::span<float> logits, std::span<float> hidden);
};

extern const DraftHeads kMtp;  // DeepSeek-AI 2024: a layer behind the last one

// Returns the model's draft heads; nullptr: it has none.
[[nodiscard]] inline const DraftHeads* draft_heads_of(const ModelSpec& spec) noexcept {
  static constexpr std::array<const DraftHeads*, 2> kKinds{nullptr, &kMtp};  // in the order of DraftHeadKind
  return kKinds[static_cast<std::size_t>(spec.draft_heads.kind)];
}

// Returns whether all rows of a step of the whole model go on to draft heads (RowsRead::all).
[[nodiscard]] inline bool heads_read_all_rows(const ModelSpec& spec) noexcept {
  const DraftHeads* heads = draft_heads_of(spec);
  return heads != nullptr && heads->reads == RowsRead::all;
}

// Returns the KV cache's layer that keeps the hidden state behind a sequence's last row, f32 [d_model]. Precondition: the model has draft
// heads.
[[nodiscard]] inline std::uint32_t hidden_layer(const ModelSpec& spec) noexcept { return spec.n_layers_with_heads(); }

// Returns the end of the KV cache's layers that a session of layers [first, last) fills. The cache has the model's layers, then those of
// draft heads, then hidden_layer(); a session of the whole model fills all of them.
[[nodiscard]] inline std::uint32_t end_of_kept(const ModelSpec& spec, std::uint32_t first, std::uint32_t last) noexcept {
  return spec.has_draft_heads() && first == 0 && last == spec.n_layers() ? hidden_layer(spec) + 1 : last;
}

// Computes a guess (DraftHeads::guess). Precondition: the model has draft heads. Errors: cancelled; the backend's.
Status guess_by_heads(const Model& model, backend::Backend& backend, const HeadRow& row, std::span<float> logits, std::span<float> hidden,
                      const std::stop_token& stop);

}  // namespace tessera::detail
