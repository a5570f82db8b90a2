// A Run computes rows of any number of sessions, in steps that fit into the workspace. The rows of one session are its *part* of the run.
// Each part is checked, prepared, computed, and then committed or undone, independently of other parts. A part that fails leaves its
// session as it was, and the other parts go on.
//
//   Run run(engine, all_layers(engine));
//   const std::size_t part = run.begin_part(session);        // its pending tokens are the first rows
//   run.add({.token = 7, .output = RowOutput::logits, .to = row});
//   TESSERA_TRY_STATUS(run.check(part));                     // nothing has changed yet
//   TESSERA_TRY_STATUS(run.prepare(part));
//   run.compute();                                           // all prepared parts
//   TESSERA_TRY_STATUS(run.outcome(part));
//   run.commit(part);
//
// Ownership: a run refers to sessions but does not own them. From prepare() until commit(), leave() or undo(), the session has a pointer to
// the run. If the session is destroyed in that time, its part is undone first, and the run goes on without it. So an owner may destroy its
// sessions at any time. Exception: not while compute() runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include <tessera/engine.hpp>

#include "engine/run/run_lists.hpp"

namespace tessera::detail {

// Says whether the computed rows become part of their sessions.
enum class Keep : std::uint8_t {
  rows,     // the rows are to be committed
  nothing,  // the rows are drafts: their keys and values are written to reserved positions, and the session does not grow
};

// The layers whose output the model's head may convert to logits and tokens.
enum class Head : std::uint8_t {
  at_the_end,  // only the model's last layer
  anywhere,    // the last layer of the run (RunOptions::last_layer), for early exits
};

struct RunOptions {
  std::uint32_t first_layer = 0;  // layers [first_layer, last_layer)
  std::uint32_t last_layer = 0;
  Head head = Head::at_the_end;
  Keep keep = Keep::rows;
  std::stop_token stop = {};  // stops all parts; checked before every layer
};

// Returns the error for a call that wants logits from a model that computes none.
[[nodiscard]] Error no_logits(const ModelSpec& spec);

// Returns options for the whole model.
[[nodiscard]] RunOptions all_layers(const Engine::State& engine, const std::stop_token& stop = {});

// Returns whether the backend draws a row's token: it can draw, the sampler has a recipe(), no log-probabilities are wanted, and the
// tokenizer suppresses no tokens.
[[nodiscard]] bool draws_on_backend(const Engine::State& engine, const Sampler& sampler, std::uint32_t logprobs) noexcept;

class Run {
 public:
  Run(const Engine::State& engine, RunOptions options) noexcept;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();  // undoes all parts that are not committed, left or undone

  // Sets a function that is called after each step with two numbers of rows, both of prepared parts: `done`, the rows that are computed,
  // and `total`, all rows. If it returns false or throws, all parts are undone. The function must outlive the run.
  void set_progress(const std::function<bool(std::size_t done, std::size_t total)>& progress) noexcept {
    if (progress) progress_ = &progress;
  }
  // Sets a function that is called when a row's logits or hidden state have been written. The function must outlive the run.
  void set_done(const std::function<void(std::size_t row)>& done) noexcept { done_ = &done; }

  // Begins a session's part, and returns the part's index. The part's first rows are the session's pending tokens, at most `most` of
  // them. If these are all pending tokens, add() adds further rows after them; if not, add no rows. A session can have only one part.
  // `stop` stops only this part, and is checked before every step.
  std::size_t begin_part(Session::State& session, const std::stop_token& stop = {}, std::size_t most = ~std::size_t{0});
  // Begins a part of drafts that follow `ahead` drafts of an earlier run (leave()). The part has no pending tokens.
  std::size_t begin_drafts(Session::State& session, std::uint64_t ahead);
  // Begins a branch: other drafts from `position` on, computed in `fork`. A branch belongs to the part with drafts that was begun before
  // it; several branches of one part follow each other. `fork` is a fork of the session's cache with reserved pages for the rows
  // (KvCache::reserve_branch()). It must outlive compute(). Do not prepare or commit a branch.
  std::size_t begin_branch(Session::State& session, const KvCache& fork, std::uint64_t position, const std::stop_token& stop);
  // Declares that the `n` parts after `part` are its branches. After this call, RunRow::also may be set in the rows of `part`.
  void set_branches(std::size_t part, std::size_t n) noexcept { lists_->parts[part].branches = n; }
  // Reserves memory for further parts and rows, so that adding them cannot fail.
  void make_room(std::size_t parts, std::size_t rows);
  // Adds a row to the last part.
  void add(const RunRow& row);
  // Adds a draft after the part's other rows. commit() may leave drafts out.
  void add_draft(const RunRow& row);

  // Sets how many tokens of the part's prompt follow in later runs. Default: none.
  void set_to_come(std::size_t part, std::uint64_t tokens) noexcept { lists_->parts[part].to_come = tokens; }

  // Checks the part's rows and its session; changes nothing.
  [[nodiscard]] Status check(std::size_t part) const noexcept;
  // Checks that the session can have rows in this run's layers: all rows of a session must be computed by the same range of layers.
  [[nodiscard]] Status check_range(const Session::State& session) const noexcept;
  [[nodiscard]] Status check_pending(std::size_t part) const noexcept;
  // Takes pages from the prefix index, and reserves pages for the other rows. After an error the part is closed.
  Status prepare(std::size_t part) noexcept;
  // Computes all prepared parts, and draws their tokens. A part that fails is closed, and outcome() says why.
  void compute() noexcept;
  // Makes the first `rows` rows of a computed part belong to the session. The session's logits are unknown afterwards. Keys and values of
  // later rows are dropped. Exception: with Reserved::keep they stay after the session's end, for commit_left() (edit.hpp).
  void commit(std::size_t part, std::size_t rows = ~std::size_t{0}, Reserved beyond = Reserved::give_back) noexcept;
  // Closes a part of drafts without committing them. Their keys and values stay after the session's end until its next commit, so that a
  // later run can continue from the drafts.
  void leave(std::size_t part) noexcept;
  // Undoes the part and its branches: its session becomes as it was.
  void undo(std::size_t part) noexcept;
  // Undoes the part, and makes `error` its outcome.
  void fail(std::size_t part, Error error) noexcept;

  [[nodiscard]] const Status& outcome(std::size_t part) const noexcept { return lists_->parts[part].outcome; }
  [[nodiscard]] const Part& part(std::size_t i) const noexcept { return lists_->parts[i]; }
  [[nodiscard]] bool is_computed(std::size_t part) const noexcept { return lists_->parts[part].phase == Part::Phase::computed; }
  [[nodiscard]] std::size_t parts() const noexcept { return lists_->parts.size(); }
  // Returns the part's rows, including the rows of pending tokens.
  [[nodiscard]] std::span<RunRow> rows(std::size_t part) noexcept;
  [[nodiscard]] std::span<const RunRow> rows(std::size_t part) const noexcept;
  [[nodiscard]] const RunOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool whole_model() const noexcept;

 private:
  class Sink;
  struct Cursor {
    std::size_t part = 0, row = 0;  // `row` is an index in the part
  };

  void hold(std::size_t part) noexcept;
  void close(std::size_t part) noexcept;
  Status check_whole(const Part& part) const noexcept;
  Status check_row(const Part& part, const RunRow& row) const noexcept;
  bool mark_voters(std::size_t part) noexcept;
  void add_sequences(std::size_t part);
  void fill_step(Cursor& cursor);
  std::size_t describe_outputs();
  [[nodiscard]] std::uint64_t draw_position(const StepRow& at) const noexcept;
  Status compute_step();
  void fail_open(const Error& error, const Cursor& from) noexcept;

  const Engine::State& engine_;
  RunOptions options_;
  const std::function<bool(std::size_t, std::size_t)>* progress_ = nullptr;
  const std::function<void(std::size_t)>* done_ = nullptr;
  Recycled<RunLists>::Lease lists_;
};

}  // namespace tessera::detail
