// A Batch is the input of one forward pass: rows (one token each) of one session or of several. Outputs are the results of these rows.
//
//   tessera::Batch batch;
//   auto added = batch.add(first, prompt);                                                 // logits after the prompt's last token
//   if (added) added = batch.add(second, {.token = token, .want = tessera::Want::logits});  // one decoding row
//   auto outputs = engine.forward(batch);
//   if (outputs && outputs->status()) std::span<const float> logits = outputs->row(batch.size() - 1);  // [vocab], after `token`
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/memory.hpp>

namespace tessera {

class Sampler;
class Session;

enum class Want : std::int32_t {
  nothing = 0,
  logits = 1,  // [vocab]; if the row is its session's last, Session::logits() has them too
  hidden = 2,  // [d_model]: the residual stream after the last layer that is computed, before the final norm
  token = 3,   // the next token after the row, drawn by the row's sampler
  embedding = 4,  // [ModelSpec::embedding_width()]: the residual stream after the final norm, for comparing texts
  scores = 5,     // [ModelSpec::n_scores]: output of the head, in a model that ranks or classifies
};

// One token to compute. Rows get the next free positions of their session, in the order of the rows.
struct Row {
  Token token = 0;
  // A vector [d_model] to compute instead of `token`. Empty: `token` is computed. The vector must live until forward() returns. Afterwards
  // the session keeps only the vector's content_hash() (Session::contents()).
  std::span<const float> embedding = {};
  Want want = Want::nothing;
  // Draws the token for Want::token. The sampler must live until forward() returns; several rows may share it. forward() only draws: it
  // does not add the drawn token to the session, and does not tell the sampler about it. Call Session::add_pending() and Sampler::accept()
  // yourself. If the sampler has penalties, also call Sampler::begin_answer() where an answer begins.
  // Who draws: the backend, if it can (a GPU can), if the sampler has a recipe(), and if the tokenizer has no suppressed() tokens.
  // Otherwise the sampler draws on the engine's threads, for several rows at once, so stages of your own must not use the engine.
  Sampler* sampler = nullptr;
  std::uint32_t segment = 0;  // the segment that the token belongs to, below ModelSpec::n_segments. 0 for models without segments
};

// A list of rows. All sessions must belong to the engine whose forward() computes the batch. A Batch may be used again after clear().
class Batch {
 public:
  // Adds a row. If the session has pending tokens (session.hpp), they are computed before its first row. The session must not be moved
  // until forward() returns.
  Status add(Session& session, const Row& row) noexcept;
  // Adds a row for each token of a prompt. The last row gets the result `want`; the other rows get no result. If `tokens` is empty, one row
  // is added: for the session's last pending token, so that this token gets the result `want`.
  Status add(Session& session, std::span<const Token> tokens, Want want = Want::logits) noexcept;
  // Adds a row for each token of a prompt, as above; `sampler` draws the token that follows the last token.
  Status add(Session& session, std::span<const Token> tokens, Sampler& sampler) noexcept;
  // Sets a stop token for this session only. It is checked before every step. If a stop is requested, only this session fails (cancelled),
  // and the other sessions of the batch go on.
  Status set_stop(Session& session, std::stop_token stop) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }  // rows

  enum class Place : std::int32_t { next = 0, pending = 1 };  // pending: the row stands for the session's last pending token
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
  // The layers to compute: first_layer to last_layer - 1. Choose a part of the layers for a pipeline, in which each engine computes one part
  // of the model. If first_layer is above 0, the rows must have embeddings: the results Want::hidden of the part before. If last_layer is
  // below the number of layers, there are no logits. All forward() calls of a session must have the same range.
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = std::numeric_limits<std::uint32_t>::max();  // cut to the number of layers
  std::stop_token stop = {};  // stops all sessions; checked before every layer
};

// The results of a batch. Argument `i` of the functions is the index of a row in the batch.
class Outputs {
 public:
  // Returns the numbers that the row wanted (see Want for their kind and size); empty if the row wanted none or its session failed.
  [[nodiscard]] std::span<const float> row(std::size_t i) const noexcept {
    if (!took(i)) return {};
    return {reinterpret_cast<const float*>(values_.data()) + rows_[i].offset, rows_[i].size};
  }
  // Returns the token that was drawn after row i; -1 if the row wanted none or its session failed.
  [[nodiscard]] Token token(std::size_t i) const noexcept {
    return took(i) ? rows_[i].token : Token{-1};
  }
  // Returns the error with which the session of row i failed; success if it did not fail. If a session failed, none of its rows was
  // computed, and the session is as it was before the call. outcome() itself returns invalid_argument if the batch had no row i, and
  // invalid_state if these Outputs are empty.
  [[nodiscard]] Status outcome(std::size_t i) const noexcept;
  // Returns success if no session failed, otherwise the error of the first session that failed. invalid_state: these Outputs are empty.
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
