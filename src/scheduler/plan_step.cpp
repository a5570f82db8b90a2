#include <tessera/scheduler/plan_step.hpp>

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// Keys that rows [position, position + rows) see in all, without windows.
std::uint64_t keys_of(std::uint64_t position, std::uint64_t rows) noexcept {
  return rows * position + rows * (rows + 1) / 2;
}

StepLoad with_rows(const StepLoad& load, std::uint64_t position, std::uint32_t rows, bool draws) noexcept {
  return {.rows = load.rows + rows, .outputs = load.outputs + (draws ? 1u : 0u), .keys = load.keys + keys_of(position, rows)};
}

// Bytes of pages that the request has not yet and is to get: for the rest of its prompt, and for the headroom's share of
// what it is expected to draw, or a page.
std::uint64_t bytes_to_come(const PlannedRequest& request, const PageCost& pages, double headroom) noexcept {
  const std::uint64_t more = request.expected > request.drawn ? request.expected - request.drawn : 0;
  const auto share = static_cast<std::uint64_t>(headroom * static_cast<double>(more));
  const std::uint64_t length = request.prompt + request.drawn - request.dropped;
  const std::uint64_t most = request.budget != 0 ? std::max(length, request.budget) : length + share;
  const std::uint64_t prompt = pages.bytes(length), end = pages.bytes(std::min(length + share, most));
  const std::uint64_t now = pages.bytes(request.computed - request.dropped);
  const std::uint64_t drawn = std::max(end - std::min(end, prompt), more > 0 ? pages.next_bytes() : 0);
  return prompt - std::min(prompt, now) + request.beams * drawn;
}

}  // namespace

void StepPlan::clear() noexcept {
  parts.clear();
  preempted.clear();
  load = {};
  bytes = 0;
  seconds = 0.0;
}

std::uint32_t free_places(std::span<const PlannedRequest> running, const StepLimits& limits) noexcept {
  std::uint64_t taken = 0;
  for (const PlannedRequest& request : running) taken += request.beams;
  return limits.max_running - static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.max_running, taken));
}

std::uint64_t bytes_to_admit(const PlannedRequest& request, const PageCost& cost, double headroom) noexcept {
  PlannedRequest begun = request;
  begun.computed = begun.dropped = 0;
  return bytes_to_come(begun, cost, headroom);
}

std::uint32_t rows_within(const CostModel& costs, const StepLoad& load, double seconds, std::uint64_t position,
                          std::uint32_t most) noexcept {
  std::uint32_t low = 0, high = most;  // `low` rows fit; more than `high` do not, or are not asked for
  while (low < high) {
    const std::uint32_t middle = high - (high - low) / 2;
    if (costs.predict(with_rows(load, position, middle, true)) <= seconds) low = middle;
    else high = middle - 1;
  }
  return low;
}

// One plan in the making.
class [[gnu::visibility("hidden")]] StepPlanner::Making {
 public:
  Making(StepPlanner& lists, std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting,
         const PageRoom& room, const CostModel& costs, const Policy& policy, const StepLimits& limits, double now,
         StepPlan& plan)
      : ranked_(lists.running_), queue_(lists.waiting_), marks_(lists.marks_), running_(running), waiting_(waiting),
        pages_(room.cost), costs_(costs), policy_(policy), limits_(limits), now_(now), plan_(plan), free_(room.free) {
    plan_.clear();
    marks_.assign(running_.size(), Mark::none);
    ranked_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) ranked_.push_back(ranked(running_, i, policy_, now_));
    std::sort(ranked_.begin(), ranked_.end());
  }

  void decode() {
    for (std::size_t at = 0; at < ranked_.size(); ++at) {
      const std::size_t index = ranked_[at].index;
      const PlannedRequest& request = running_[index];
      if (marks_[index] != Mark::none || request.needed() != 1) continue;
      if (take(at, growth(request, 1))) add_decoding(index);
      else preempt(index);
    }
    decoding_ = !plan_.parts.empty();
  }

  void go_on_with_prompts() {
    for (std::size_t at = 0; at < ranked_.size(); ++at) {
      const std::size_t index = ranked_[at].index;
      const PlannedRequest& request = running_[index];
      if (marks_[index] != Mark::none || request.needed() == 1) continue;
      std::uint32_t rows = chunk(request.computed, request.needed());
      if (rows == 0) return;  // neither has the next one any
      while (rows > 1 && growth(request, rows) > free_) rows /= 2;  // rather than to take pages from others
      if (take(at, growth(request, rows))) add(index, request.computed, rows, rows == request.needed());
      // Else it waits for pages. Where nobody else goes on either, there would be none ever.
      else if (plan_.parts.empty() && plan_.preempted.empty() && at + 1 == ranked_.size()) preempt(index);
    }
  }

  void admit() {
    const std::size_t places = free_places(running_, limits_);
    if (waiting_.empty() || places == 0 || !plan_.preempted.empty() || !batch_is_open()) return;
    std::uint64_t reserved = 0;
    for (const PlannedRequest& request : running_) reserved += still_to_come(request);
    for (const StepPlan::Part& part : plan_.parts) {  // of which these rows have theirs already
      const PlannedRequest& request = running_[part.request];
      reserved -= std::min(reserved, growth(request, part.rows));
    }
    rank_first(waiting_, policy_, now_, places, queue_);
    for (const Ranked& next : queue_) {
      const std::size_t index = next.index;
      const PlannedRequest& request = waiting_[index];
      const std::uint64_t need = still_to_come(request) + (request.suspended ? pages_.bytes(request.computed - request.dropped) : 0);
      const std::uint64_t own = need - std::min(need, request.shared);
      if (own > free_ || reserved > free_ - own) return;
      if (!comes_by_itself(request)) {
        reserved += own;
        continue;
      }
      const std::uint32_t rows = chunk(request.computed + request.saved, request.needed() - request.saved);
      if (rows == 0) return;
      free_ -= own;
      plan_.bytes += own;
      add(running_.size() + index, request.computed + request.saved, rows, rows == request.needed() - request.saved);
    }
  }

  // Drafts are worth a row as long as one more gives more tokens a second: its chance of being kept, over what its row and
  // its making take, against the rows of the step, each of which is a token somebody waits for, over the step's seconds.
  // Nobody gives pages up for them. The k-th of everybody come before anybody's next.
  void draft() {
    if (!plan_.preempted.empty() || plan_.parts.empty()) return;
    const StepLoad none = plan_.load;
    double tokens = none.rows, seconds = costs_.drawing(none).value_or(costs_.predict(none)), rows_cost = 0.0;
    bool more = true;
    for (std::uint32_t k = 1; more; ++k) {
      more = false;
      for (StepPlan::Part& part : plan_.parts) {
        if (part.request >= running_.size() || part.rows != k) continue;  // one that decodes, and has k - 1 drafts
        const PlannedRequest& request = running_[part.request];
        if (request.needed() != 1 || request.drafts < k || plan_.load.rows >= limits_.rows) continue;
        const StepLoad load = with_rows(plan_.load, request.computed + k, 1, true);
        const double with_it = costs_.more(none, load), cost = with_it - rows_cost + request.draft_seconds;
        const bool always = std::isinf(request.draft_chance);
        const double kept = always ? 1.0 : std::pow(request.draft_chance, k);
        if (!always && (!(kept * seconds > kMargin * cost * tokens) || costs_.predict(load) > limits_.seconds)) continue;
        const std::uint64_t need = growth(request, k + 1) - growth(request, k);
        if (need > free_) continue;
        free_ -= need;
        plan_.bytes += need;
        plan_.load = load;
        ++part.rows;
        if (k > 1) add_branch(request, part);
        rows_cost = with_it;
        tokens += kept;
        seconds += cost;
        more = true;
      }
    }
  }

  void finish() { plan_.seconds = plan_.parts.empty() ? 0.0 : costs_.predict(plan_.load); }

 private:
  static constexpr std::uint32_t kLeastRows = 8;
  static constexpr double kMargin = 1.05;  // by which a draft is to be better than none: costs are not exact

  [[nodiscard]] bool comes_by_itself(const PlannedRequest& request) const noexcept {
    if (request.awaits == PlannedRequest::kNobody) return true;
    if (std::ranges::find(running_, request.awaits, &PlannedRequest::order) != running_.end()) return false;
    return std::ranges::none_of(plan_.parts, [&](const StepPlan::Part& part) {
      return part.request >= running_.size() && waiting_[part.request - running_.size()].order == request.awaits;
    });
  }

  // Each draft behind the first may begin one.
  void add_branch(const PlannedRequest& request, StepPlan::Part& part) noexcept {
    const std::uint64_t bytes = pages_.next_bytes();
    if (part.branches == request.branches || bytes > free_) return;
    ++part.branches;
    free_ -= bytes;
    plan_.bytes += bytes;
  }

  [[nodiscard]] std::uint64_t growth(const PlannedRequest& request, std::uint64_t rows) const noexcept {
    if (request.beams > 1 && request.needed() == 1) return request.next_bytes;
    const std::uint64_t held = request.computed - request.dropped;
    const std::uint64_t more = pages_.bytes(held + rows), now = pages_.bytes(held);
    return more - std::min(more, now);
  }

  [[nodiscard]] std::uint64_t still_to_come(const PlannedRequest& request) const noexcept {
    return bytes_to_come(request, pages_, limits_.headroom);
  }

  // `need` bytes for the request of rank `at`, if need be at the cost of those behind it. Whether there are.
  bool take(std::size_t at, std::uint64_t need) {
    while (need > free_) {
      std::size_t victim = running_.size();
      double least = 0.0;
      for (std::size_t i = at + 1; i < ranked_.size(); ++i) {
        const std::size_t index = ranked_[i].index;
        if (marks_[index] != Mark::none || running_[index].held == 0) continue;
        const double loss = policy_.loss(running_[index], now_);
        if (victim != running_.size() && loss >= least) continue;
        victim = index;
        least = loss;
      }
      if (victim == running_.size()) return false;
      preempt(victim);
    }
    free_ -= need;
    plan_.bytes += need;
    return true;
  }

  void preempt(std::size_t index) {
    marks_[index] = Mark::preempted;
    free_ += running_[index].held;
    plan_.preempted.push_back(index);
  }

  // A row, or one for each beam.
  void add_decoding(std::size_t index) {
    const PlannedRequest& request = running_[index];
    add(index, request.computed, 1, true);
    for (std::uint32_t beam = 1; beam < request.beams; ++beam) plan_.load = with_rows(plan_.load, request.computed, 1, true);
    plan_.parts.back().rows = request.beams;
  }

  void add(std::size_t index, std::uint64_t position, std::uint32_t rows, bool draws) {
    if (index < running_.size()) marks_[index] = Mark::served;
    plan_.parts.push_back({.request = index, .rows = rows});
    plan_.load = with_rows(plan_.load, position, rows, draws);
  }

  // Rows of a prompt from `position` on that this step has room for.
  [[nodiscard]] std::uint32_t chunk(std::uint64_t position, std::uint64_t needed) const noexcept {
    const std::uint64_t left = limits_.rows > plan_.load.rows ? limits_.rows - plan_.load.rows : 0;
    const auto most = static_cast<std::uint32_t>(std::min(needed, left));
    if (!decoding_) return most;  // nobody waits for the end of this step
    const std::uint32_t rows = rows_within(costs_, plan_.load, limits_.seconds, position, most);
    // Where those who decode fill the budget by themselves, one prompt goes on all the same, slowly: by rows that take no longer
    // than a budget and half of what the others take.
    const bool first = plan_.load.rows == plan_.load.outputs;
    if (rows >= std::min(most, kLeastRows) || !first) return rows;
    const double seconds = 1.5 * costs_.predict(plan_.load) + limits_.seconds;
    return std::max(rows_within(costs_, plan_.load, seconds, position, std::min(most, kLeastRows)), std::min(most, 1u));
  }

  [[nodiscard]] bool batch_is_open() const noexcept {
    if (limits_.batching == Batching::continuous) return true;
    if (!running_.empty()) return false;
    if (limits_.batching == Batching::fixed || waiting_.size() >= limits_.max_running) return true;
    return std::ranges::any_of(waiting_, [&](const PlannedRequest& request) {
      return now_ - request.submitted >= limits_.max_wait;
    });
  }

  std::vector<Ranked>&ranked_, &queue_;
  std::vector<Mark>& marks_;
  std::span<const PlannedRequest> running_, waiting_;
  const PageCost& pages_;
  const CostModel& costs_;
  const Policy& policy_;
  const StepLimits& limits_;
  double now_;
  StepPlan& plan_;
  std::uint64_t free_;
  bool decoding_ = false;
};

StepPlanner::Ranked StepPlanner::ranked(std::span<const PlannedRequest> requests, std::size_t index, const Policy& policy,
                                        double now) {
  const double rank = policy.rank(requests[index], now);
  return {.rank = std::isnan(rank) ? 0.0 : rank, .order = requests[index].order, .index = index};
}

void StepPlanner::rank_first(std::span<const PlannedRequest> requests, const Policy& policy, double now, std::size_t most,
                             std::vector<Ranked>& queue) {
  queue.clear();
  for (std::size_t i = 0; i < requests.size() && most > 0; ++i) {
    const Ranked one = ranked(requests, i, policy, now);
    if (queue.size() == most) {
      if (!(one < queue.front())) continue;  // the last of them, as a heap has it
      std::pop_heap(queue.begin(), queue.end());
      queue.pop_back();
    }
    queue.push_back(one);
    std::push_heap(queue.begin(), queue.end());
  }
  std::sort_heap(queue.begin(), queue.end());
}

void StepPlanner::first(std::span<const PlannedRequest> requests, const Policy& policy, double now, std::size_t most,
                        std::vector<std::size_t>& indices) {
  rank_first(requests, policy, now, most, waiting_);
  indices.clear();
  for (const Ranked& one : waiting_) indices.push_back(one.index);
}

void StepPlanner::plan(std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting,
                       const PageRoom& room, const CostModel& costs, const Policy& policy, const StepLimits& limits,
                       double now, StepPlan& plan) {
  Making making(*this, running, waiting, room, costs, policy, limits, now, plan);
  making.decode();
  making.go_on_with_prompts();
  making.admit();
  making.draft();
  making.finish();
}

}  // namespace tessera
