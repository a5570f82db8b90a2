// Engine::State and Session::State, the data behind the public handles Engine and Session.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/engine.hpp>

#include "engine/adapters/adapter_places.hpp"
#include "engine/adapters/loaded_adapters.hpp"
#include "engine/adapters/sequence_adapters.hpp"
#include "engine/load/identity.hpp"
#include "engine/load/metadata.hpp"
#include "engine/ranks/remote_adapters.hpp"
#include "engine/run/fair_queue.hpp"
#include "engine/run/logits_buffer.hpp"
#include "engine/run/run_lists.hpp"
#include "engine/session/history.hpp"
#include "engine/session/session_use.hpp"
#include "engine/session/votes.hpp"
#include "kv/other_parts.hpp"
#include "model/draft_heads.hpp"
#include "model/step/step_executor.hpp"
#include "ranks/model_division.hpp"

namespace tessera {

namespace detail {
class Run;
}

struct Engine::State : std::enable_shared_from_this<Engine::State> {
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
  // Limits for texts that are read together in one step (embed()). A single text may exceed them.
  struct {
    std::uint64_t rows = 0, pages = 0;
  } texts;
  // The division of the model, if ranks in other processes have parts with pages of their own; nullptr: all pages are in this process.
  std::shared_ptr<const detail::ModelDivision> division;
  std::unique_ptr<detail::PageMemory> pages;      // memory of the sessions' pages
  std::unique_ptr<detail::StepExecutor> steps;    // executes all steps, one at a time
  std::unique_ptr<detail::RemoteAdapters> remote_adapters;  // sends adapters to ranks in other processes; or nullptr
  std::unique_ptr<detail::OtherParts> other_parts;  // reads and writes keys and values that other processes have; or nullptr
  std::filesystem::path path;      // path of the model; empty if it was loaded from a source
  detail::AdapterPlaces places;
  // Places and backends of the other ranks in this process. `steps` owns the objects to which they refer.
  struct RankPlaces {
    detail::AdapterPlaces places;
    backend::Backend* backend = nullptr;
  };
  std::vector<RankPlaces> rank_places;
  mutable detail::LoadedAdapters adapters;
  std::size_t ranks_elsewhere = 0;  // number of ranks in other processes
  mutable detail::FairQueue queue;  // calls wait here until they may use the backend
  mutable detail::Recycled<detail::RunLists> run_lists;

  // Makes `pages` and `steps` for the present model, backend and pools.
  void make_executor() {
    pages = std::make_unique<detail::CacheMemory>(*kv_pools);
    steps = std::make_unique<detail::BackendExecutor>(model, *backend, *pages);
  }
};

namespace detail {

// The data of a sequence besides its keys and values. A fork copies all of it, a snapshot saves it, and clearing the sequence clears it.
struct SequenceRecord {
  std::vector<Token> tokens;  // computed tokens, then pending tokens; -1 for an embedding
  // The content (content_hash()) of each embedding among `tokens`, in order; empty if the sequence has no embeddings. Only the hashes are
  // kept, not the values of embeddings: when a pending embedding is computed, find_embedding() asks the program for its values.
  std::vector<Hash128> contents;
  SequenceAdapters adapters;
  // The layers [first_layer, last_layer) that compute the sequence. last_layer is 0 before the first run.
  std::uint32_t first_layer = 0, last_layer = 0;
  History history;            // empty unless the sequence is edited
  std::uint64_t removed = 0;  // tokens that edits have removed
  Votes votes;                // votes for tokens, if the token budget chooses by votes
  // true: a drop of the token budget failed because memory was short. The next call that computes tokens of the session makes this drop
  // before it computes.
  bool drop_is_due = false;
  std::size_t reused = 0;     // tokens whose pages were taken from the prefix index

  [[nodiscard]] KvInputs inputs() const noexcept { return {tokens, contents, adapters.keys()}; }
  // Adds an embedding. If memory is short, throws bad_alloc and changes nothing. Precondition: `tokens` has room for one more element.
  void add_embedding(std::span<const float> embedding) {
    contents.push_back(content_hash(embedding));
    tokens.push_back(-1);
  }
  // Keeps the first n tokens, and drops the later tokens with their contents. Precondition: there are at least n tokens.
  void keep_tokens(std::size_t n) noexcept {
    if (n < tokens.size() && !contents.empty()) contents.resize(inputs().first(n).contents.size());
    if (n < tokens.size() && !adapters.empty()) adapters.truncate(n);
    tokens.resize(n);
  }
  // Removes tokens [first, last) with their contents.
  void erase_tokens(std::size_t first, std::size_t last) noexcept {
    const KvInputs before = inputs().first(first), erased = inputs().behind(before).first(last - first);
    const auto at = contents.begin() + static_cast<std::ptrdiff_t>(before.contents.size());
    contents.erase(at, at + static_cast<std::ptrdiff_t>(erased.contents.size()));
    if (!adapters.empty()) adapters.erase(first, last);
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(last));
  }

  // Forgets what was recorded about computed rows: the history and the votes. Called when no computed row is left. Does not change
  // `tokens` and `removed`: the sampler's random numbers depend on them (stream_position()).
  void forget_rows() noexcept {
    history = {};
    votes = {};
    drop_is_due = false;
  }
};

}  // namespace detail

struct Session::State : detail::SequenceRecord {
  State(Engine of, std::shared_ptr<const Engine::State> state, KvCache cache)
      : engine(std::move(of)),
        shared(std::move(state)),
        kv(std::move(cache)),
        hidden(detail::keeps_hidden(shared->model.spec, detail::HiddenKept::in_pages) ? shared->model.spec.d_model : 0) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();  // in run.cpp. If a run has a part of this session, the destructor undoes that part first

  [[nodiscard]] SequenceRecord& record() noexcept { return *this; }
  [[nodiscard]] const SequenceRecord& record() const noexcept { return *this; }
  [[nodiscard]] std::size_t vocab() const noexcept { return shared->model.spec.vocab_size; }
  [[nodiscard]] bool has_pending() const noexcept { return tokens.size() > kv.length(); }
  [[nodiscard]] std::span<const Token> pending() const noexcept { return std::span(tokens).subspan(kv.length()); }
  // Returns the position at which the sampler draws the next token: the number of tokens, counting also those that edits have removed. A
  // removal does not lower this position, so the sampler does not use a random number twice. (A token's position in the cache is smaller
  // after edits.)
  [[nodiscard]] std::uint64_t stream_position() const noexcept { return removed + tokens.size(); }
  // Reserves memory, so that `tokens` can grow to n tokens in all without an allocation. If `tokens` must grow, reserves memory for 2 n
  // tokens (at least 256), but not for more than the cache can hold. Does not reserve memory for the whole context from the start, because a
  // file may claim any context.
  void reserve_tokens(std::size_t n) {
    const std::size_t ahead = std::max<std::size_t>(2 * n, 256);
    if (n > tokens.capacity()) tokens.reserve(std::max(n, std::min<std::size_t>(ahead, kv.capacity() + 1)));
  }

  Engine engine;
  std::shared_ptr<const Engine::State> shared;
  KvCache kv;
  // Memory for a copy of the hidden state after the last computed token [d_model], if draft heads keep hidden states in pages
  // (HiddenKept::in_pages); otherwise empty. hidden_behind() fills this memory, because a hidden state is not contiguous in a page.
  mutable std::vector<float> hidden;
  // Returns the last row of `logits`  [vocab]. Precondition: has_last.
  [[nodiscard]] std::span<const float> last_logits() const noexcept {
    return std::span<const float>(logits.values()).subspan((logits_rows - 1) * vocab(), vocab());
  }

  // `logits` has the logits of the last append(). The next append() writes to `next_logits`, so that the old logits are still valid if that
  // append() fails. Both buffers have no memory until a call wants logits.
  detail::LogitsBuffer logits, next_logits;
  std::size_t logits_rows = 0;
  bool has_last = false;  // true: the last row of `logits` has the logits of the sequence's last token
  [[nodiscard]] bool knows_logits() const noexcept { return has_last && !has_pending(); }

  KvOptions kv_options;  // resolved: no value is automatic
  StreamOptions stream;
  std::function<std::span<const float>(const Hash128&)> embedding_of;  // SessionOptions::embedding_of

  // true: the last page is not full, and another session may use it too, so the next write copies it first. (Atomic, because fork() reads
  // the session, and two threads may fork it at once.)
  mutable std::atomic<bool> shares_last_page = false;

  std::shared_ptr<detail::SessionUse> use = std::make_shared<detail::SessionUse>();

  // The run that has prepared or computed rows of this session, and the index of the session's part in that run; nullptr: none. Only Run
  // sets them. If the session is destroyed meanwhile, its destructor undoes the part, so that the run never uses a destroyed session.
  detail::Run* held_by = nullptr;
  std::size_t held_part = 0;

  std::uint64_t guesses = 0;  // number of the last series of guesses (begin_guesses()); all earlier series (TargetGuesses) are invalid

  // Prompt tokens that were computed since the previous generation, and the seconds that this took. The next generation reports them.
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0.0;
};

namespace detail {

// Asks the program (SessionOptions::embedding_of) for the embedding with this content, and returns its values [d_model]. Returns nullptr
// if embedding_of is not set, throws, or returns values of another content. Then the session cannot compute the embedding again.
[[nodiscard]] const float* find_embedding(const Session::State& session, const Hash128& content) noexcept;
// Returns whether the session can compute its tokens from `first` on again: true if all embeddings among them are found.
[[nodiscard]] bool can_recompute(const Session::State& session, std::size_t first) noexcept;

}  // namespace detail

}  // namespace tessera
