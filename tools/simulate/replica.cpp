#include "replica.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace tessera::simulate {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Replica::Replica(const ReplicaOptions& options, std::uint32_t block_tokens, const tool::ServiceLevel& level)
    : options_(options), block_tokens_(block_tokens) {
  figures_.level = level;
}

std::uint64_t Replica::held() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedRequest& request : running_) bytes += request.held;
  return bytes;
}

PageRoom Replica::room() const noexcept {
  const std::uint64_t budget = options_.kv_budget == 0 ? UINT64_MAX / 2 : options_.kv_budget;
  return {.cost = options_.pages, .free = budget - std::min(budget, held())};
}

void Replica::submit(const tool::TraceRequest& request) {
  now_ = std::max(now_, running_.empty() && waiting_.empty() ? request.arrival : now_);
  ++figures_.requests;
  const PlannedRequest planned{.id = submitted_,
                               .order = submitted_++,
                               .priority = request.priority,
                               .submitted = request.arrival,
                               .deadline = request.deadline,
                               .prompt = request.prompt,
                               .expected = request.output};
  const std::uint64_t most = std::max(bytes_to_admit(planned, options_.pages, options_.limits.headroom),
                                      options_.pages.bytes(std::uint64_t{request.prompt} + request.output));
  const std::size_t places = options_.limits.max_running - std::min<std::size_t>(options_.limits.max_running, running_.size());
  const bool is_full = options_.max_waiting != 0 && waiting_.size() >= options_.max_waiting + places;
  if (is_full || (options_.kv_budget != 0 && most > options_.kv_budget)) {
    ++figures_.refused;
    return;
  }
  figures_.prompt_tokens += request.prompt;
  work_ += std::uint64_t{request.prompt} + request.output;
  waiting_.push_back(planned);
  Tenants::Tenant& tenant = tenants_.named(std::to_string(request.tenant));
  tenants_.submitted(tenant);
  waiting_times_.push_back({.request = &request, .tenant = &tenant});
}

void Replica::run_until(double time) {
  while (now_ < time && !(running_.empty() && waiting_.empty())) {
    if (const std::uint64_t steps = steps_alike(time); steps > 1) decode_alike(steps);
    else if (!step()) {
      wait_for_batch(time);
      return;
    }
  }
}

// Dynamic batching waits for more requests, until the longest-waiting request has waited max_wait. Sets the clock to this time; no request
// begins earlier.
void Replica::wait_for_batch(double until) {
  double first = kNever;
  for (const PlannedRequest& request : waiting_) first = std::min(first, request.submitted);
  const double begins = first + options_.limits.max_wait;
  // Adds the smallest possible time, so that rounding cannot keep the wait from ending.
  now_ = std::min(until, std::max(begins, std::nextafter(now_, kNever)));
  if (now_ < until) {
    now_ = std::nextafter(now_, kNever);
    run_until(until);
  }
}

// Returns how many of the next steps are decode steps of the same requests, for which there are pages. These steps are simulated together.
std::uint64_t Replica::steps_alike(double until) const {
  const bool may_admit = !waiting_.empty() && running_.size() < options_.limits.max_running &&
                         options_.limits.batching == Batching::continuous;
  if (options_.one_by_one || running_.empty() || may_admit || running_.size() > options_.limits.rows) return 0;
  std::uint64_t most = UINT64_MAX;
  for (const PlannedRequest& request : running_) {
    if (request.needed() != 1) return 0;
    most = std::min(most, request.expected - request.drawn);
  }
  const auto fits = [&](std::uint64_t steps) {
    std::uint64_t bytes = 0;
    for (const PlannedRequest& request : running_) {
      bytes += options_.pages.bytes(request.computed + steps) - options_.pages.bytes(request.computed);
    }
    return bytes <= room().free;
  };
  if (options_.kv_budget != 0 && !fits(most)) {
    std::uint64_t low = 0;  // the largest number of steps known to fit
    for (std::uint64_t high = most; high - low > 1;) {
      const std::uint64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    most = low;
  }
  if (until == kNever) return most;
  // Estimates the steps that begin before `until`: each takes about as long as the first.
  StepLoad load{.rows = static_cast<std::uint32_t>(running_.size()), .outputs = static_cast<std::uint32_t>(running_.size())};
  for (const PlannedRequest& request : running_) load.keys += request.computed + 1;
  const double first = options_.costs.predict(load);
  const double steps = std::ceil((until - now_) / std::max(first, 1e-9));
  return steps < static_cast<double>(most) ? static_cast<std::uint64_t>(steps) : most;
}

void Replica::decode_alike(std::uint64_t steps) {
  const auto rows = static_cast<std::uint32_t>(running_.size());
  StepLoad load{.rows = rows, .outputs = rows};
  for (const PlannedRequest& request : running_) load.keys += request.computed + 1;
  const double first = options_.costs.predict(load);
  load.keys += std::uint64_t{rows} * (steps - 1);
  const double last = options_.costs.predict(load);
  const double all = static_cast<double>(steps) * (first + last) / 2;
  figures_.step.add(all / static_cast<double>(steps), steps);
  figures_.batch.add(rows, steps);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    PlannedRequest& request = running_[i];
    Times& times = running_times_[i];
    if (request.drawn == 0) times.first = now_ + first;
    else figures_.itl.add(now_ + first - times.last);
    figures_.itl.add((all - first) / static_cast<double>(std::max<std::uint64_t>(steps - 1, 1)), steps - 1);
    times.last = now_ + all;
    if (times.scheduled < 0) times.scheduled = now_;
    tenants_.drawn(*times.tenant, steps);
    request.drawn += steps;
    request.computed += steps;
    request.held = options_.pages.bytes(request.computed);
  }
  figures_.output_tokens += steps * rows;
  work_ -= std::min(work_, steps * rows);
  now_ += all;
  remove_finished();
}

// Does one step as the planner decides. Returns false if nothing can be computed now.
bool Replica::step() {
  look_for_prefixes();
  for (std::size_t i = 0; i < running_.size(); ++i) running_[i].tenant_service = running_times_[i].tenant->service;
  const double begin_plan = steady_seconds();
  planner_.plan(running_, waiting_, room(), options_.costs, *options_.policy, options_.limits, now_, plan_);
  figures_.scheduler.add(steady_seconds() - begin_plan);
  if (plan_.shares.empty() && plan_.preempted.empty()) return false;
  file_seconds_ = 0.0;
  const std::size_t running = running_.size();
  std::vector<std::size_t> admitted;
  for (const StepPlan::Share& share : plan_.shares) {
    if (share.request < running) continue;
    admit(share.request - running);
    admitted.push_back(share.request - running);
  }
  const double seconds = plan_.seconds + file_seconds_;
  const double begin = now_;
  now_ += seconds;
  std::size_t next = running;
  for (const StepPlan::Share& share : plan_.shares) {
    const std::size_t index = share.request < running ? share.request : next++;
    if (running_times_[index].scheduled < 0) running_times_[index].scheduled = begin;
    compute(index, share.rows);
  }
  if (!plan_.shares.empty()) {
    figures_.step.add(seconds);
    figures_.batch.add(plan_.load.rows);
  }
  // Removes from the back, so that the requests that move to the removed places do not move again.
  std::ranges::sort(admitted, std::greater<>());
  for (const std::size_t index : admitted) {
    waiting_[index] = waiting_.back();
    waiting_times_[index] = waiting_times_.back();
    waiting_.pop_back();
    waiting_times_.pop_back();
  }
  std::ranges::sort(plan_.preempted, std::greater<>());
  for (const std::size_t index : plan_.preempted) preempt(index);
  remove_finished();
  if (options_.kv_budget != 0) {
    const std::uint64_t block = std::max<std::uint64_t>(options_.pages.bytes(block_tokens_), 1);
    cache_.shrink(room().free / block);
  }
  return true;
}

// Updates the figures of the waiting requests for the planner, unless no request can be admitted.
void Replica::look_for_prefixes() {
  if (running_.size() >= options_.limits.max_running) return;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    PlannedRequest& request = waiting_[i];
    request.tenant_service = waiting_times_[i].tenant->service;
    if (request.suspended) continue;
    const std::size_t blocks = cache_.count(waiting_times_[i].request->blocks);
    // The last token is always computed, because its logits are needed.
    request.saved = std::min<std::uint64_t>(blocks * block_tokens_, request.prompt - 1);
  }
}

// Starts a waiting request with its pages: the cached pages of its beginning, or its suspended pages from the file.
void Replica::admit(std::size_t index) {
  PlannedRequest request = waiting_[index];
  const Times& times = waiting_times_[index];
  if (request.suspended) {
    file_seconds_ += static_cast<double>(options_.pages.bytes(request.computed)) / options_.file_rate;
    request.suspended = false;
  } else {
    (void)cache_.find(times.request->blocks);
    request.computed = request.saved;
    if (request.drawn == 0) figures_.prefix_tokens += request.saved;
    work_ -= std::min(work_, request.saved);
  }
  request.saved = 0;
  request.held = options_.pages.bytes(request.computed);
  running_.push_back(request);
  running_times_.push_back(times);
}

void Replica::compute(std::size_t index, std::uint32_t rows) {
  PlannedRequest& request = running_[index];
  Times& times = running_times_[index];
  const bool was_prompt = request.computed < request.prompt;
  const bool draws = rows == request.needed();
  request.computed += rows;
  request.held = options_.pages.bytes(request.computed);
  work_ -= std::min<std::uint64_t>(work_, rows);
  if (was_prompt) tenants_.computed_prompt(*times.tenant, rows);
  if (was_prompt && request.computed >= request.prompt) cache_.insert(times.request->blocks);
  if (!draws) return;
  if (request.drawn == 0) times.first = now_;
  else figures_.itl.add(now_ - times.last);
  times.last = now_;
  tenants_.drawn(*times.tenant, 1);
  ++request.drawn;
  ++figures_.output_tokens;
}

// Preempts a request in the cheaper of two ways: its pages are written to the file, or its rows are computed again later.
void Replica::preempt(std::size_t index) {
  PlannedRequest request = running_[index];
  ++figures_.preempted;
  const auto rows = static_cast<std::uint32_t>(request.computed);
  const double again = options_.costs.predict({.rows = rows, .outputs = 1, .keys = request.computed * request.computed / 2});
  const double by_file =
      options_.file_rate > 0 ? static_cast<double>(request.held) / options_.file_rate : kNever;
  if (by_file <= again) {
    request.suspended = true;
  } else {
    figures_.recomputed_tokens += request.computed;
    work_ += request.computed;
    request.computed = 0;
  }
  request.held = 0;
  waiting_.push_back(request);
  waiting_times_.push_back(running_times_[index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  running_times_.erase(running_times_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Replica::remove_finished() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const PlannedRequest& request = running_[i];
    const Times& times = running_times_[i];
    if (request.drawn >= request.expected) {
      const double arrival = times.request->arrival;
      figures_.add_finished(times.scheduled - arrival, times.first - arrival, times.last - arrival, request.drawn);
      figures_.seconds = std::max(figures_.seconds, times.last);
      if (times.last > times.request->deadline) ++figures_.missed;
      tenants_.ended(*times.tenant);
      if (finished_) finished_(*times.request, times.last);
      continue;
    }
    running_[kept] = running_[i];
    running_times_[kept++] = running_times_[i];
  }
  running_.resize(kept);
  running_times_.resize(kept);
}

}  // namespace tessera::simulate
