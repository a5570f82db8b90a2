// Rows for one forward pass: what each puts in, whose it is, and what is wanted of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>

namespace tessera {

class Session;

enum class Want : std::int32_t {
  nothing = 0,
  logits = 1,  // [vocab]
  hidden = 2,  // [d_model]: the residual stream after the last layer that runs, before the final norm
};

// A row's place in its session is the next free position, in the order of rows.
struct Row {
  Token token = 0;
  std::span<const float> embedding = {};  // [d_model], instead of the token; alive until forward() returns
  Want want = Want::nothing;
};

class Batch {
 public:
  // A session's pending token (session.hpp) goes before its first row. The session must stay where it is until
  // forward() returns.
  Status add(Session& session, const Row& row) noexcept;
  // Tokens of a prompt; `want` is wanted of the last alone.
  Status add(Session& session, std::span<const Token> tokens, Want want = Want::logits) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

  struct Entry {
    Session* session;
    Row row;
  };
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return rows_; }

 private:
  std::vector<Entry> rows_;
};

struct ForwardOptions {
  // Layers [first_layer, last_layer), for pipelines and early exit. From a layer other than the first, rows are
  // embeddings; short of the last, no logits. A session keeps to the range it began with.
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = std::numeric_limits<std::uint32_t>::max();  // cut to the number of layers
  std::stop_token stop = {};  // looked at before every layer
};

// What was wanted, by row of the batch.
class Outputs {
 public:
  // [vocab] or [d_model]; empty for a row of which nothing was wanted.
  [[nodiscard]] std::span<const float> row(std::size_t i) const noexcept {
    if (i + 1 >= offsets_.size()) return {};
    return {reinterpret_cast<const float*>(values_.data()) + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

 private:
  friend class Engine;
  Buffer values_;                     // from the engine's Memory
  std::vector<std::size_t> offsets_;  // [rows + 1]
};

}  // namespace tessera
