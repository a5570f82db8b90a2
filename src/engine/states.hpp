// What the handles of the public API hold.
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

// What a sequence is beside its keys and values: copied whole by forks, kept by snapshots, cleared with the sequence.
struct SequenceRecord {
  std::vector<Token> tokens;  // the computed ones, and behind them the pending ones
  std::uint32_t first_layer = 0, last_layer = 0;  // the range of layers that computes it; last_layer 0: none has yet
  History history;            // of an edited sequence
  std::uint64_t removed = 0;  // tokens that edits took out
  Votes votes;                // where the budget's choice counts them
  bool drop_is_due = false;   // there was no memory for it
  std::size_t reused = 0;     // tokens whose pages came from the prefix index

  // Forgets what the computed rows left, once none of them is there. The tokens stay, and `removed`: a sampler's random numbers
  // depend on them.
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
  // Of the next token, counting those that edits removed: it never comes again, so neither do a sampler's random
  // numbers.
  [[nodiscard]] std::uint64_t stream_position() const noexcept { return removed + tokens.size(); }
  // Room for n tokens in doubling steps: a context that a file merely claims takes nothing.
  void reserve_tokens(std::size_t n) {
    const std::size_t ahead = std::max<std::size_t>(2 * n, 256);
    if (n > tokens.capacity()) tokens.reserve(std::max(n, std::min<std::size_t>(ahead, kv.capacity() + 1)));
  }

  Engine engine;
  std::shared_ptr<const Engine::State> shared;
  KvCache kv;
  // The last row of `logits`, if it belongs to the last token  [vocab].
  [[nodiscard]] std::span<const float> last_logits() const noexcept {
    return std::span<const float>(logits.values()).subspan((logits_rows - 1) * vocab(), vocab());
  }

  // What the last append() gave, and room for what the next will give: on error the old ones are still there. Neither
  // has memory before logits are asked for.
  detail::LogitsBuffer logits, next_logits;
  std::size_t logits_rows = 0;
  bool has_last = false;  // the last of these rows belongs to the last token
  [[nodiscard]] bool knows_logits() const noexcept { return has_last && !has_pending(); }

  KvOptions kv_options;  // nothing automatic
  StreamOptions stream;

  // Whether the last page, if it is not full, may be another's too: the next write copies it then. (Two forks may be made
  // at once.)
  mutable std::atomic<bool> shares_last_page = false;

  std::shared_ptr<detail::SessionUse> use = std::make_shared<detail::SessionUse>();
  std::size_t part = 0;      // forward()'s, while it has the session

  // The run in which the session has a part that is prepared or computed, and that part; none: nullptr. Run alone sets them.
  // Whoever owns the session may free it at any time: its destructor has the part undone, so the run never finds it gone.
  detail::Run* held_by = nullptr;
  std::size_t held_part = 0;

  // Since the previous generation, for its figures.
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0.0;
};

}  // namespace tessera
