// The states behind the public handles: Engine and Session.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/engine.hpp>

#include "engine/load/identity.hpp"
#include "engine/load/metadata.hpp"
#include "engine/run/fair_queue.hpp"
#include "engine/run/logits_buffer.hpp"
#include "engine/run/run_lists.hpp"
#include "engine/session/history.hpp"
#include "engine/session/session_use.hpp"
#include "engine/session/votes.hpp"
#include "model/model.hpp"

namespace tessera {

namespace detail {
class Run;
}

struct Engine::State {
  State(EngineOptions from, Tokenizer with, detail::KeptSettings kept)
      : options(std::move(from)), tokenizer(std::move(with)), metadata(std::move(kept)) {}

  EngineOptions options;
  Tokenizer tokenizer;
  detail::KeptSettings metadata;
  std::shared_ptr<Executor> executor;
  std::unique_ptr<backend::Backend> backend;
  detail::Model model;
  Plan plan;
  detail::Identity identity;
  std::optional<KvPools> kv_pools;
  mutable detail::FairQueue queue;  // for the backend
  mutable detail::Recycled<detail::RunLists> run_lists;
};

namespace detail {

// The data of a sequence beside its keys and values. Forks copy all of it, snapshots keep it, and it is cleared with the sequence.
struct SequenceRecord {
  std::vector<Token> tokens;  // computed tokens, then pending tokens; -1 for an embedding
  // content_hash() of each embedding among `tokens`, in order. No memory is taken for sequences without embeddings. An embedding is never
  // pending, because its values are not kept.
  std::vector<Hash128> contents;
  std::uint32_t first_layer = 0, last_layer = 0;  // range of layers that computes the sequence; last_layer 0: none has yet
  History history;            // edits of an edited sequence
  std::uint64_t removed = 0;  // tokens that edits took out
  Votes votes;                // counted if the budget's choice needs them
  bool drop_is_due = false;   // a drop had no memory and must come first in the next call
  std::size_t reused = 0;     // tokens whose pages came from the prefix index

  [[nodiscard]] KvInputs inputs() const noexcept { return {tokens, contents}; }
  // Adds an embedding. May throw bad_alloc; then nothing has changed. Precondition: `tokens` has room.
  void add_embedding(std::span<const float> embedding) {
    contents.push_back(content_hash(embedding));
    tokens.push_back(-1);
  }
  // Forgets the tokens from `n` on, and their contents. Precondition: there are at least n.
  void keep_tokens(std::size_t n) noexcept {
    if (n < tokens.size() && !contents.empty()) contents.resize(inputs().first(n).contents.size());
    tokens.resize(n);
  }
  // Takes the tokens [first, last) out, with their contents.
  void erase_tokens(std::size_t first, std::size_t last) noexcept {
    const KvInputs before = inputs().first(first), erased = inputs().behind(before).first(last - first);
    const auto at = contents.begin() + static_cast<std::ptrdiff_t>(before.contents.size());
    contents.erase(at, at + static_cast<std::ptrdiff_t>(erased.contents.size()));
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(last));
  }

  // Forgets everything that follows from computed rows, when no computed row is left. `tokens` and `removed` stay, because a
  // sampler's random numbers depend on them.
  void forget_rows() noexcept {
    history = {};
    votes = {};
    drop_is_due = false;
  }
};

}  // namespace detail

struct Session::State : detail::SequenceRecord {
  State(Engine of, std::shared_ptr<const Engine::State> state, KvCache cache)
      : engine(std::move(of)), shared(std::move(state)), kv(std::move(cache)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();  // run.cpp: a run that holds the session undoes its part first

  [[nodiscard]] SequenceRecord& record() noexcept { return *this; }
  [[nodiscard]] const SequenceRecord& record() const noexcept { return *this; }
  [[nodiscard]] std::size_t vocab() const noexcept { return shared->model.spec.vocab_size; }
  [[nodiscard]] bool has_pending() const noexcept { return tokens.size() > kv.length(); }
  [[nodiscard]] std::span<const Token> pending() const noexcept { return std::span(tokens).subspan(kv.length()); }
  // Returns the next token's position, counting removed tokens too. No position comes twice, so no random number of a sampler is used
  // twice.
  [[nodiscard]] std::uint64_t stream_position() const noexcept { return removed + tokens.size(); }
  // Makes room for n tokens, by doubling: a large context that only a file claims takes no memory.
  void reserve_tokens(std::size_t n) {
    const std::size_t ahead = std::max<std::size_t>(2 * n, 256);
    if (n > tokens.capacity()) tokens.reserve(std::max(n, std::min<std::size_t>(ahead, kv.capacity() + 1)));
  }

  Engine engine;
  std::shared_ptr<const Engine::State> shared;
  KvCache kv;
  // Returns the last row of `logits`  [vocab]. Precondition: has_last.
  [[nodiscard]] std::span<const float> last_logits() const noexcept {
    return std::span<const float>(logits.values()).subspan((logits_rows - 1) * vocab(), vocab());
  }

  // The logits of the last append(), and room for those of the next: after an error the old logits are still there. Neither buffer has
  // memory before logits are asked for.
  detail::LogitsBuffer logits, next_logits;
  std::size_t logits_rows = 0;
  bool has_last = false;  // the last row of `logits` belongs to the last token
  [[nodiscard]] bool knows_logits() const noexcept { return has_last && !has_pending(); }

  KvOptions kv_options;  // resolved: no option is automatic
  StreamOptions stream;

  // The last page, if it is not full, may be shared with another session: the next write then copies it. (Two forks may be made at
  // once.)
  mutable std::atomic<bool> shares_last_page = false;

  std::shared_ptr<detail::SessionUse> use = std::make_shared<detail::SessionUse>();

  // The run in which the session has a prepared or computed part, and the part's index; nullptr: no run. Only Run sets them. The
  // session's owner may free it at any time: the destructor undoes the part, so the run never finds the session gone.
  detail::Run* held_by = nullptr;
  std::size_t held_part = 0;

  std::uint64_t guesses = 0;  // number of the TargetGuesses that began last; earlier ones have ended

  // The tokens and seconds of prompts since the previous generation, for the next generation's figures.
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0.0;
};

}  // namespace tessera
