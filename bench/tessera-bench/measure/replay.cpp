#include "measure/replay.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "failure.hpp"
#include "interrupt.hpp"

namespace tessera::bench {
namespace {

constexpr double kLongestSleep = 0.05, kRetry = 1e-3;  // seconds

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns a hash of `x` that looks random (SplitMix64; Steele, Lea and Flood 2014).
std::uint64_t scrambled(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns made-up tokens for the prompt of request `n`: equal blocks of the trace get equal tokens.
std::vector<Token> prompt_of(const tool::Trace& trace, std::size_t n, std::uint32_t vocabulary) {
  const tool::TraceRequest& request = trace.requests[n];
  std::vector<Token> tokens(request.prompt);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t block = i / trace.block_tokens;
    const bool is_known = block < request.blocks.size();
    const std::uint64_t source = is_known ? scrambled(request.blocks[block]) : scrambled(~std::uint64_t{n});
    const std::size_t at = is_known ? i % trace.block_tokens : i;
    tokens[i] = static_cast<Token>(scrambled(source + at) % vocabulary);
  }
  return tokens;
}

constexpr std::size_t kCostsEvery = 16;  // steps

// A request of the trace while it is served.
struct Followed {
  std::optional<RequestHandle> handle;  // none: it was refused, or has not arrived
  double first = 0.0, last = 0.0;       // times of its first and its last token
  std::uint64_t tokens = 0;
};

class Replay {
 public:
  Replay(const Engine& engine, const tool::Trace& trace, const ReplayOptions& options)
      : engine_(engine), trace_(trace), options_(options), scheduler_(make_scheduler()), requests_(trace.requests.size()) {
    figures_.level = options.level;
    figures_.requests = requests_.size();
  }

  void run(const ReplayProgress& progress) {
    while (arrived_ < requests_.size() || !scheduler_.idle()) {
      throw_if_interrupted();
      while (arrived_ < requests_.size() && trace_.requests[arrived_].arrival <= now()) submit(arrived_++);
      const bool more = value(scheduler_.step());
      if (++steps_ % kCostsEvery == 0) add_costs();
      progress(ended_ + figures_.refused);
      if (!more) sleep();
    }
  }

  [[nodiscard]] tool::ServingFigures figures() {
    for (std::size_t n = 0; n < requests_.size(); ++n) {
      Followed& followed = requests_[n];
      if (!followed.handle) continue;
      if (const Status status = followed.handle->status(); !status) fail(status.error());
      const tool::TraceRequest& request = trace_.requests[n];
      const RequestFigures own = followed.handle->figures();
      figures_.add_finished(own.scheduled - request.arrival, followed.first - request.arrival, followed.last - request.arrival,
                            followed.tokens);
      figures_.seconds = std::max(figures_.seconds, followed.last);
      figures_.missed += followed.last > request.deadline ? 1 : 0;
      figures_.prompt_tokens += request.prompt;
      figures_.prefix_tokens += own.reused_tokens;
      figures_.output_tokens += followed.tokens;
      figures_.preempted += own.preemptions;
      figures_.recomputed_tokens += own.recomputed_tokens;
    }
    const SchedulerFigures all = scheduler_.figures();
    figures_.step = all.step;
    figures_.batch = all.rows;
    figures_.scheduler = all.planning;
    add_costs();
    const CostModel::Costs costs = mean_costs();
    figures_.costs = fmt::format("fixed={:.4g},output={:.4g},few_rows={:.4g},many_rows={:.4g},key={:.4g}", costs.fixed, costs.output,
                                 costs.few_rows, costs.many_rows, costs.key);
    return figures_;
  }

 private:
  [[nodiscard]] Scheduler make_scheduler() {
    engine_.trim();
    return value(Scheduler::create(engine_, {.policy = options_.policy,
                                             .limits = options_.limits,
                                             .max_waiting = options_.max_waiting == 0 ? SIZE_MAX : options_.max_waiting,
                                             .clock = [this] { return now(); },
                                             .on_event = [this](const RequestEvent& event) {
                                               ended_ += event.kind == RequestEvent::Kind::finished ? 1 : 0;
                                             }}));
  }

  [[nodiscard]] double now() const { return steady_seconds() - begin_; }

  // Adds the scheduler's present costs to a mean over the whole trace, because a scheduler's costs describe only its newest steps.
  void add_costs() {
    const CostModel::Costs now = scheduler_.figures().costs;
    costs_.fixed += now.fixed;
    costs_.output += now.output;
    costs_.few_rows += now.few_rows;
    costs_.many_rows += now.many_rows;
    costs_.key += now.key;
    ++n_costs_;
  }
  [[nodiscard]] CostModel::Costs mean_costs() const {
    const auto n = static_cast<double>(n_costs_);
    return {costs_.fixed / n, costs_.output / n, costs_.few_rows / n, costs_.many_rows / n, costs_.key / n};
  }

  void submit(std::size_t n) {
    const tool::TraceRequest& request = trace_.requests[n];
    Followed& followed = requests_[n];
    const auto take = [this, &followed](const RequestPiece&) {
      const double time = now();
      if (followed.tokens++ == 0) followed.first = time;
      else figures_.itl.add(time - followed.last);
      followed.last = time;
    };
    auto handle = scheduler_.submit({.prompt = prompt_of(trace_, n, engine_.spec().vocab_size),
                                     .generate = {.max_tokens = request.output, .end_of_generation = EndOfGeneration::ignore},
                                     .priority = request.priority,
                                     .deadline = std::max(request.deadline - now(), 1e-9),
                                     .tenant = std::to_string(request.tenant),
                                     .on_piece = take});
    if (handle) {
      followed.handle = *std::move(handle);
      return;
    }
    const bool is_refused = handle.error().code() == ErrorCode::busy || handle.error().code() == ErrorCode::invalid_argument;
    if (!is_refused) fail(handle.error());
    ++figures_.refused;
  }

  // Sleeps until the next request arrives, at most for a short time, after which step() is tried again.
  void sleep() const {
    double until = now() + (scheduler_.idle() ? kLongestSleep : kRetry);
    if (arrived_ < requests_.size()) until = std::min(until, trace_.requests[arrived_].arrival);
    const double seconds = until - now();
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  const Engine& engine_;
  const tool::Trace& trace_;
  const ReplayOptions& options_;
  const double begin_ = steady_seconds();
  std::size_t arrived_ = 0, ended_ = 0, steps_ = 0, n_costs_ = 0;
  CostModel::Costs costs_{.fixed = 0, .output = 0, .few_rows = 0, .many_rows = 0, .key = 0};  // sums over n_costs_ measurements
  tool::ServingFigures figures_;
  Scheduler scheduler_;
  std::vector<Followed> requests_;
};

}  // namespace

tool::ServingFigures replay(const Engine& engine, const tool::Trace& trace, const ReplayOptions& options,
                            const ReplayProgress& progress) {
  Replay replay(engine, trace, options);
  replay.run(progress);
  return replay.figures();
}

}  // namespace tessera::bench
