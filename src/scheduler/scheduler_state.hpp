// A scheduler's requests and what is done with them. `mutex` guards what callers of any thread touch; `step_mutex` is held by
// whoever drives, and guards the rest.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/callback.hpp"
#include "engine/states.hpp"
#include "kv/kv_watch.hpp"
#include "scheduler/active.hpp"
#include "scheduler/draft_ledger.hpp"
#include "scheduler/waiting.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] Scheduler::State : std::enable_shared_from_this<Scheduler::State> {
  State(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how);

  static constexpr std::size_t kMostRowsLearnt = 256;  // that draw in a step; more are taken for as many

  // --- Of any thread.
  const Engine engine;
  const std::shared_ptr<const Engine::State> shared;
  const SchedulerOptions options;
  const PageCost page_cost;               // of sessions of the engine's own KV type

  mutable std::mutex mutex;
  std::condition_variable changed;        // for a driver: there is something to do
  std::deque<detail::ActivePtr> inbox;    // submitted, and not seen by a step yet
  std::uint64_t submitted = 0;
  std::size_t waiting_now = 0, running_now = 0;  // as the last step left them; the inbox counts beside
  bool is_draining = false, is_closed = false, has_news = false;
  int drivers = 0;
  SchedulerFigures figures;
  double predicted_wait = 0.0, token_guess = 0.0;  // seconds: of the queue, of a token
  CostModel costs_guess;                  // as the last step left `costs`
  double wake_time = 0.0;
  std::vector<std::uint64_t> cancelled;   // ids

  // The scheduler's time. Where the host's clock throws: the time that it gave last.
  [[nodiscard]] double now() const noexcept;
  // Runs a callback of the host's. What it throws is the error of the step that ends next.
  template <class Fn>
  void call(std::string_view name, Fn&& fn) const noexcept {
    const Status called = detail::guard([&]() -> Status { return detail::call_host(name, std::forward<Fn>(fn)), Status(); });
    if (!called) note_failed_callback(called.error());
  }
  void note_failed_callback(const Error& error) const noexcept;
  mutable std::atomic<double> last_time = 0.0;
  mutable std::mutex callback_mutex;             // of the next; nothing else is taken behind it
  mutable std::optional<Error> failed_callback;  // the first one since the last step
  static double steady_seconds() noexcept;
  Result<std::shared_ptr<RequestHandle::State>> submit(Request request);
  Status check(const Request& request) const;
  [[nodiscard]] std::uint64_t context_of(const Request& request) const noexcept;  // of its session, tokens
  // How often a request has come to wish for something else than to go on as it is: to stop, to be held back, to go on
  // again. Counted after the wish can be seen.
  std::atomic<std::uint64_t> wishes = 0;
  void look_again() noexcept { wishes.fetch_add(1); }
  void wake() noexcept;  // likewise, and for a driver there is something to do

  // --- Of whoever drives.
  detail::FairQueue turns;  // of whoever drives and of between_steps(); entered before step_mutex is locked
  std::mutex step_mutex;
  std::vector<detail::ActivePtr> running, held_back;  // in order of submission
  detail::Waiting waiting;
  std::vector<std::uint64_t> cancelling;  // ids that the step has taken from `cancelled`
  std::uint64_t wishes_seen = 0;
  CostModel costs;
  detail::DraftLedger ledger{kMostRowsLearnt};
  // Whoever drives reads them as it likes, and changes them with tenants_mutex alone: figures() reads them with that.
  Tenants tenants;
  mutable std::mutex tenants_mutex;       // taken behind no other lock, and none behind it
  double file_rate = 1e9;                 // bytes a second, as learnt
  StepPlanner planner;
  StepPlan plan;
  std::vector<PlannedRequest> running_plans;
  std::vector<std::size_t> candidates;      // of `waiting`: whom the step may admit, in order
  std::vector<PlannedRequest> candidate_plans;  // [candidates]
  std::vector<RequestEvent> events;       // of this step

  std::vector<detail::ActivePtr> admitted;  // by the step in the making
  std::uint64_t for_drops = 0;              // bytes that first drops of this step are to find
  bool is_stuck = false;                    // one that keeps its pages found no more of them in this step
  struct Gap {
    double seconds;
    std::uint64_t tokens;
  };
  std::vector<Gap> gaps;                    // between this step's tokens and those before: equal for most of them
  double engine_seconds = 0.0;              // of this step, in which sessions, the model and texts were at work
  std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> pieces;  // for callbacks
  std::shared_ptr<RequestHandle::State> to_tell;  // whose readers wait for what has come: a list, by told_after
  struct InStep {
    detail::Active* active;
    std::size_t first_part = 0, parts = 0;  // of the run; several of beams, none where logits are known
  };
  // What came of a member: its pieces, several where drafts were right, and then perhaps an error.
  struct Drawn {
    std::size_t first = 0, pieces = 0;  // of drawn_pieces
    Status status = {};
  };
  // Of a step in the making; members so that no step has to allocate them.
  std::vector<InStep> members;
  std::vector<Drawn> drawn;                 // [members]
  std::vector<Piece> drawn_pieces;
  std::vector<std::pair<detail::ActivePtr, Error>> failed;

  std::unique_ptr<detail::KvWatch> kv_watch;  // where somebody listens
  std::atomic<bool> is_telling = false;       // somebody hands its events out

  // step.cpp
  Result<bool> step();
  void tell_kv_events() noexcept;
  void tell_readers() noexcept;
  Result<bool> step_alone();
  void take_inbox();
  void sort_out();                          // who is cancelled, held back, or goes on
  [[nodiscard]] PageRoom room() const;      // any thread's
  void make_plan(double time);
  void hold_drafts() noexcept;
  void note_counts() noexcept;
  void close() noexcept;
  // compute.cpp
  void make_room_for_step();
  bool compute(double begin) noexcept;
  bool offer_rows(detail::Run& run, double begin) noexcept;
  Status put_in(detail::Run& run, detail::Active& active, const StepPlan::Part& part) noexcept;
  void note_drafts(const detail::Run& run, const StepLoad& load, double seconds, double drafting) noexcept;
  static void count_reused(const detail::Active& active, std::uint64_t tokens) noexcept;
  void draw(detail::Run& run, const InStep& member) noexcept;
  // Without memory for it an event is not told.
  void tell(RequestEvent::Kind kind, const detail::Active& active, double time) noexcept {
    if (!options.on_event) return;
    (void)detail::guard([&]() -> Status { return events.push_back({kind, active.request->id, time}), Status(); });
  }
  // delivery.cpp
  void finish_part(detail::Active& active, const Drawn& what, double begin, double time);
  void count_drafts(detail::Active& active, std::size_t drafted, std::size_t accepted);
  void note_progress(detail::Active& active, std::uint64_t computed, double time) noexcept;
  void deliver(detail::Active& active, Piece piece, double time);
  void note_drawn(detail::Active& active, std::uint64_t tokens) noexcept;
  void note_token(detail::Active& active, bool is_first, double time);
  void end_running(detail::Active& active, std::optional<Error> error) noexcept;
  void fail(RequestHandle::State& request, const Error& error) noexcept;
  void note_reader(const std::shared_ptr<RequestHandle::State>& request) noexcept;
  void end(detail::Active& active, std::optional<Error> error) noexcept;
  // prefixes.cpp
  struct Prefixes;
  // By types, page, salt.
  std::map<std::tuple<DType, WideLayers, std::uint32_t, std::string>, std::shared_ptr<detail::PrefixProbe>> probes;
  std::vector<std::size_t> in_order;
  std::vector<Token> looked_for;
  std::size_t next_look_up = 0;
  [[nodiscard]] std::shared_ptr<const detail::PrefixProbe> probe_of(const detail::Active& active);  // nullptr: it shares nothing
  void look_up(std::size_t i) noexcept;
  [[nodiscard]] std::uint64_t awaited_by(const detail::Active& active, const PlannedRequest& plan, double time) const;
  void find_candidates(std::size_t places, std::uint64_t free, double time);
  // admission.cpp
  Status admit(detail::Active& active, double time) noexcept;
  Status make_session(detail::Active& active);
  void take_known(detail::Active& active);
  void fork_samples(std::size_t index) noexcept;
  // searches.cpp
  Status check_beams(const Request& request, std::size_t tokens, std::size_t context) const;
  void begin_search(detail::Active& active) noexcept;
  void give_search_up(detail::Active& active) noexcept;
  void search_on(detail::Active& active, double time);
  [[nodiscard]] static bool can_give_way(detail::Active& active) noexcept;
  // drops.cpp
  void plan_drops(detail::Active& active, const Request& request, std::uint64_t most) const;
  void count_drop(detail::Active& active);
  [[nodiscard]] std::uint64_t shared_bytes(const detail::Active& active, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t set_aside() const noexcept;  // for all who never give their pages up
  Status check_drop(detail::Active& active, std::uint64_t rows);
  // admission.cpp
  void give_way(detail::Active& active) noexcept;
  void fail_or_wait(detail::ActivePtr active, const Error& error) noexcept;
  void learn_file_rate(std::uint64_t bytes, double seconds) noexcept;
  void estimate_wait() noexcept;
};

}  // namespace tessera
