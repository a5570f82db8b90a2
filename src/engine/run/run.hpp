// A Run computes rows of any sessions, in steps that fit into the workspace. The rows of one session are its *part* of the run. Each part
// is checked, prepared, computed, and then committed or undone by itself: a part that fails leaves its session as it was, and the other
// parts go on.
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
// Ownership: a run refers to sessions and owns none. From prepare() until commit(), leave() or undo() the session knows the run
// that holds it; a session that is freed meanwhile has its part undone first, and the run goes on without it. So an owner may free
// its sessions whenever it likes. Exception: not while compute() runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include <tessera/engine.hpp>

#include "engine/run/run_lists.hpp"

namespace tessera::detail {

// The fate of computed rows.
enum class Keep : std::uint8_t {
  rows,     // the rows are to be committed
  nothing,  // the rows are drafts: their keys and values are written to reserved positions, and the session does not grow
};

// The layers whose output the model's head may turn into logits and tokens.
enum class Head : std::uint8_t {
  at_the_end,  // the model's last layer alone
  anywhere,    // the last layer of the run (RunOptions::last_layer), for early exits
};

struct RunOptions {
  std::uint32_t first_layer = 0;  // layers [first_layer, last_layer)
  std::uint32_t last_layer = 0;
  Head head = Head::at_the_end;
  Keep keep = Keep::rows;
  std::stop_token stop = {};  // stops all parts; looked at before every layer
};

// Returns the error of a call that wants logits of a model that has none.
[[nodiscard]] Error no_logits(const ModelSpec& spec);

// Returns options for the whole model.
[[nodiscard]] RunOptions all_layers(const Engine::State& engine, const std::stop_token& stop = {});

// Returns whether the backend draws a row's token: the backend can draw, the sampler has a recipe(), no log-probabilities are asked for,
// and the tokenizer suppresses no tokens.
[[nodiscard]] bool draws_on_backend(const Engine::State& engine, const Sampler& sampler, std::uint32_t logprobs) noexcept;

class Run {
 public:
  Run(const Engine::State& engine, RunOptions options) noexcept;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();  // undoes all parts that are neither committed nor undone

  // Sets a function that is called after each step with the rows of prepared parts that are done and in all. False, or an exception, undoes
  // all parts. The function must outlive the run.
  void set_progress(const std::function<bool(std::size_t done, std::size_t total)>& progress) noexcept {
    if (progress) progress_ = &progress;
  }
  // Sets a function that is called when a row's logits or hidden state have been written. The function must outlive the run.
  void set_done(const std::function<void(std::size_t row)>& done) noexcept { done_ = &done; }

  // Begins a session's part and returns its index. Its first rows are the session's pending tokens, at most `most` of them; rows of add()
  // follow, unless more than `most` tokens are pending. A session has one part at most. `stop` stops this part alone; it is looked at
  // before every step.
  std::size_t begin_part(Session::State& session, const std::stop_token& stop = {}, std::size_t most = ~std::size_t{0});
  // Begins a part of drafts that follow `ahead` drafts which an earlier run left (leave()). It has no pending tokens.
  std::size_t begin_drafts(Session::State& session, std::uint64_t ahead);
  // Begins a branch: other drafts from `position` on, computed in `fork`. The branch belongs to the part before it, which has drafts;
  // several branches of one part follow each other. `fork` is a fork of the session's cache that has room for the rows
  // (KvCache::reserve_branch()) and outlives compute(). Do not prepare or commit a branch.
  std::size_t begin_branch(Session::State& session, const KvCache& fork, std::uint64_t position, const std::stop_token& stop);
  // Says that the `n` parts behind `part` are its branches. After that RunRow::also may be set.
  void set_branches(std::size_t part, std::size_t n) noexcept { lists_->parts[part].branches = n; }
  // Makes room for further parts and rows, so that adding them does not fail.
  void make_room(std::size_t parts, std::size_t rows);
  // Adds a row to the last part.
  void add(const RunRow& row);
  // Adds a draft, behind the part's other rows. commit() may leave drafts out.
  void add_draft(const RunRow& row);

  // Says how many tokens of the part's prompt follow in later runs. Default: none.
  void set_to_come(std::size_t part, std::uint64_t tokens) noexcept { lists_->parts[part].to_come = tokens; }

  // Checks the part's rows and its session; changes nothing.
  [[nodiscard]] Status check(std::size_t part) const noexcept;
  // Checks that the session can have rows in this run's layers: a session keeps to the range of layers that it began with.
  [[nodiscard]] Status check_range(const Session::State& session) const noexcept;
  [[nodiscard]] Status check_pending(std::size_t part) const noexcept;
  // Takes pages from the prefix index, and reserves pages for the other rows. After an error the part is closed.
  Status prepare(std::size_t part) noexcept;
  // Computes all prepared parts, and draws their tokens. A part that fails is closed, and outcome() says why.
  void compute() noexcept;
  // Gives the first `rows` rows of a computed part to the session; the session's logits are then unknown. Keys and values of later rows go.
  // Exception: with Reserved::keep they stay behind the session's length, for commit_left() (edit.hpp).
  void commit(std::size_t part, std::size_t rows = ~std::size_t{0}, Reserved beyond = Reserved::give_back) noexcept;
  // Closes a part of drafts without committing them. Their keys and values stay behind the session's length until its next commit, so
  // that a later run can go on from them.
  void leave(std::size_t part) noexcept;
  // Undoes the part and its branches: its session is as it was.
  void undo(std::size_t part) noexcept;
  // Undoes the part, and makes `error` its outcome.
  void fail(std::size_t part, Error error) noexcept;

  [[nodiscard]] const Status& outcome(std::size_t part) const noexcept { return lists_->parts[part].outcome; }
  [[nodiscard]] const Part& part(std::size_t i) const noexcept { return lists_->parts[i]; }
  [[nodiscard]] bool is_computed(std::size_t part) const noexcept { return lists_->parts[part].phase == Part::Phase::computed; }
  [[nodiscard]] std::size_t parts() const noexcept { return lists_->parts.size(); }
  // Returns the part's rows, those of its pending tokens included.
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
