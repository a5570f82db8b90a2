// Rows for one forward pass: what each puts in, whose it is, and what is wanted of it; and what came of them.
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

class Sampler;
class Session;

enum class Want : std::int32_t {
  nothing = 0,
  logits = 1,  // [vocab]; if the row is its session's last, Session::logits() has them too
  hidden = 2,  // [d_model]: the residual stream after the last layer that runs, before the final norm
  token = 3,   // the token that the row's sampler draws to follow the row
  embedding = 4,  // [d_model]: the same after the final norm, which the output matrix reads: what texts are compared by
};

// A row's place in its session is the next free position, in the order of rows.
struct Row {
  Token token = 0;
  std::span<const float> embedding = {};  // [d_model], instead of the token; alive until forward() returns
  Want want = Want::nothing;
  // Of Want::token. The backend draws where it can (a GPU's does), the sampler has a recipe() and the tokenizer has no
  // suppressed() tokens; else the sampler draws, and those of several rows at once, on the engine's threads. Then its
  // stages must not use the engine. The token is not added to the session, and the sampler does not accept it: that is
  // the host's to do (Session::add_pending(), Sampler::accept()). The sampler lives until forward() returns; rows may
  // share one.
  Sampler* sampler = nullptr;
};

class Batch {
 public:
  // A session's pending tokens (session.hpp) go before its first row. The session must stay where it is until
  // forward() returns.
  Status add(Session& session, const Row& row) noexcept;
  // Tokens of a prompt; `want` is wanted of the last alone. No tokens: one row, that stands for the session's last
  // pending token.
  Status add(Session& session, std::span<const Token> tokens, Want want = Want::logits) noexcept;
  // The same, and the sampler draws the token that follows the last.
  Status add(Session& session, std::span<const Token> tokens, Sampler& sampler) noexcept;
  // A stop of this session's own, looked at before every step. The others go on.
  Status set_stop(Session& session, std::stop_token stop) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }  // rows

  enum class Place : std::int32_t { next = 0, pending = 1 };  // pending: the row is the session's last pending token
  struct Entry {
    Session* session;
    Row row;
    Place place = Place::next;
  };
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return rows_; }
  struct Stop {
    Session* session;
    std::stop_token stop;
  };
  [[nodiscard]] std::span<const Stop> stops() const noexcept { return stops_; }

 private:
  std::vector<Entry> rows_;
  std::vector<Stop> stops_;
};

struct ForwardOptions {
  // Layers [first_layer, last_layer), for pipelines. From a layer other than the first, rows are embeddings; short of
  // the last, no logits. A session keeps to the range it began with.
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = std::numeric_limits<std::uint32_t>::max();  // cut to the number of layers
  std::stop_token stop = {};  // of all sessions; looked at before every layer
};

// What came of a batch, by row.
class Outputs {
 public:
  // [vocab] or [d_model]; empty for a row of which nothing was wanted, and if its session failed.
  [[nodiscard]] std::span<const float> row(std::size_t i) const noexcept {
    if (!took(i)) return {};
    return {reinterpret_cast<const float*>(values_.data()) + rows_[i].offset, rows_[i].size};
  }
  // The token that was drawn after row i; -1 for a row that wanted none, and if its session failed.
  [[nodiscard]] Token token(std::size_t i) const noexcept {
    return took(i) ? rows_[i].token : Token{-1};
  }
  // Of row i's session: an error says why it took none of its rows, and is as it was. invalid_argument: the batch had no row i;
  // invalid_state: these Outputs are empty.
  [[nodiscard]] Status outcome(std::size_t i) const noexcept;
  // The first error of a session; good if all took their rows. invalid_state: these Outputs are empty.
  [[nodiscard]] Status status() const noexcept;

 private:
  friend class Engine;
  struct Place {
    std::size_t offset = 0, size = 0;  // in values_
    std::size_t session = 0;           // in outcomes_
    Token token = -1;
  };
  [[nodiscard]] bool took(std::size_t i) const noexcept {
    return i < rows_.size() && outcomes_[rows_[i].session].has_value();
  }

  Buffer values_;              // from the engine's Memory
  std::vector<Place> rows_;
  std::vector<Status> outcomes_;  // [sessions]
};

}  // namespace tessera
