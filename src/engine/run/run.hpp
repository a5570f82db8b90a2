// Rows of any sessions through the model, in steps that the workspace holds. Each session's part is checked, prepared,
// computed, and then committed or undone by itself: a part that fails leaves its session as it was, and the others go on.
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

#include "engine/run/run_lists.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

// What becomes of the rows.
enum class Keep : std::uint8_t {
  rows,     // they are to be committed
  nothing,  // drafts: their keys and values are written to reserved positions, and the session does not grow
};

// Where the model's head may be applied, for logits and tokens.
enum class Head : std::uint8_t {
  at_the_end,  // after the model's last layer alone
  anywhere,    // early exit: after last_layer, wherever that is
};

struct RunOptions {
  std::uint32_t first_layer = 0;  // layers [first_layer, last_layer)
  std::uint32_t last_layer = 0;
  Head head = Head::at_the_end;
  Keep keep = Keep::rows;
  std::stop_token stop = {};  // of all parts; looked at before every layer
};

// The whole model.
[[nodiscard]] RunOptions all_layers(const Engine::State& engine, const std::stop_token& stop = {});

// Whether the backend draws a row's token: it can, the sampler is one said in numbers, and nothing but the token is asked for.
[[nodiscard]] bool draws_on_backend(const Engine::State& engine, const Sampler& sampler, std::uint32_t logprobs) noexcept;

class Run {
 public:
  Run(const Engine::State& engine, RunOptions options) noexcept;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();  // undoes what is neither committed nor undone

  // After each step: rows of prepared parts done, and in all. False, or an exception, undoes all parts. It outlives the run.
  void set_progress(const std::function<bool(std::size_t done, std::size_t total)>& progress) noexcept {
    if (progress) progress_ = &progress;
  }
  // The row's logits or hidden state are where they belong. It outlives the run.
  void set_done(const std::function<void(std::size_t row)>& done) noexcept { done_ = &done; }

  // A part of the session's, whose rows follow with add(): first its pending tokens, at most `most` of them (if there are
  // more, no others may follow). A session has one part at most. `stop` is its own: it is looked at before every step.
  std::size_t begin_part(Session::State& session, const std::stop_token& stop = {}, std::size_t most = ~std::size_t{0});
  // Drafts that follow `ahead` drafts of an earlier run, which left them: no pending tokens go before them.
  std::size_t begin_drafts(Session::State& session, std::uint64_t ahead);
  // A branch of the drafts of the part before it, or of another branch of those: rows from `position` on, in a fork of the
  // session's cache that has room for them (KvCache::reserve_branch()) and outlives compute(). No prepare(), no commit().
  std::size_t begin_branch(Session::State& session, const KvCache& fork, std::uint64_t position, const std::stop_token& stop);
  // The next parts, which are such branches, are this one's. Then RunRow::also may be set.
  void set_branches(std::size_t part, std::size_t n) noexcept { lists_->parts[part].branches = n; }
  // Room for so many more, so that adding them does not fail.
  void make_room(std::size_t parts, std::size_t rows);
  void add(const RunRow& row);
  // A draft, behind the part's other rows: it may be left out when they are committed.
  void add_draft(const RunRow& row);

  // So many tokens of the part's prompt follow in later runs; none, if nobody says so.
  void set_to_come(std::size_t part, std::uint64_t tokens) noexcept { lists_->parts[part].to_come = tokens; }

  // Looks at the rows and the session; changes nothing.
  [[nodiscard]] Status check(std::size_t part) const noexcept;
  // Whether the session can have rows in these layers: it keeps to those that it began with.
  [[nodiscard]] Status check_range(const Session::State& session) const noexcept;
  // Takes what the prefix index has, and reserves pages for the rest. On error the part is closed.
  Status prepare(std::size_t part) noexcept;
  // Computes all prepared parts, and draws their tokens. What failed is closed, and its outcome says why.
  void compute() noexcept;
  // The first `rows` of a computed part's rows are the session's now; the others' keys and values go. The session's
  // logits are not known. Kept beyond them, the others' stay behind the session's length, for commit_left() (edit.hpp).
  void commit(std::size_t part, std::size_t rows = ~std::size_t{0}, Reserved beyond = Reserved::give_back) noexcept;
  // Drafts stay where they are, behind the session's length, until its next commit: a later run goes on from them.
  void leave(std::size_t part) noexcept;
  // The part's branches are undone with it.
  void undo(std::size_t part) noexcept;
  // Undoes it, for this reason.
  void fail(std::size_t part, Error error) noexcept;

  [[nodiscard]] const Status& outcome(std::size_t part) const noexcept { return lists_->parts[part].outcome; }
  [[nodiscard]] const Part& part(std::size_t i) const noexcept { return lists_->parts[i]; }
  [[nodiscard]] bool is_computed(std::size_t part) const noexcept { return lists_->parts[part].phase == Part::Phase::computed; }
  [[nodiscard]] std::size_t parts() const noexcept { return lists_->parts.size(); }
  // The part's rows, its pending tokens' too.
  [[nodiscard]] std::span<RunRow> rows(std::size_t part) noexcept;
  [[nodiscard]] std::span<const RunRow> rows(std::size_t part) const noexcept;
  [[nodiscard]] const RunOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool whole_model() const noexcept;

 private:
  class Sink;
  struct Cursor {
    std::size_t part = 0, row = 0;  // row: of the part
  };

  void hold(std::size_t part) noexcept;
  void close(std::size_t part) noexcept;
  Status check_row(const Part& part, const RunRow& row) const noexcept;
  bool mark_voters(std::size_t part) noexcept;
  void add_views(std::size_t part);
  void fill_step(Cursor& cursor);
  Status compute_step();
  void fail_open(const Error& error, const Cursor& from) noexcept;

  const Engine::State& engine_;
  RunOptions options_;
  const std::function<bool(std::size_t, std::size_t)>* progress_ = nullptr;
  const std::function<void(std::size_t)>* done_ = nullptr;
  Recycled<RunLists>::Lease lists_;
};

}  // namespace tessera::detail
