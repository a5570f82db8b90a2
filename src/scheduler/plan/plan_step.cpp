#include <tessera/unstable/scheduler/plan_step.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "decoding/draft_economy.hpp"

namespace tessera {
namespace {

// Returns the number of keys that rows [position, position + rows) see, summed over the rows, if there is no window.
std::uint64_t keys_of(std::uint64_t position, std::uint64_t rows) noexcept {
  return rows * position + rows * (rows + 1) / 2;
}

StepLoad with_rows(const StepLoad& load, std::uint64_t position, std::uint32_t rows, bool draws) noexcept {
  return {.rows = load.rows + rows, .outputs = load.outputs + (draws ? 1u : 0u), .keys = load.keys + keys_of(position, rows)};
}

// Returns the bytes of KV pages that the request will still need: for the rest of its prompt, and for a fraction (StepLimits::headroom) of
// the tokens that it is expected to draw (for these at least one page). A fraction suffices, because a request for which pages are missing
// later can be preempted. Exception: a request that will drop tokens may be unable to give up its pages after the drop. For such a request
// the result includes the pages of all tokens until the drop, and the pages that the drop itself needs.
std::uint64_t bytes_to_come(const PlannedRequest& request, const PageCost& pages, double headroom) noexcept {
  const auto bytes_of = [&](std::uint64_t tokens) { return sequence_bytes(request, pages, tokens); };
  const std::uint64_t more = request.expected > request.drawn ? request.expected - request.drawn : 0;
  const std::uint64_t length = request.prompt + request.drawn - request.dropped;
  const bool drops = request.budget != 0 && length + more > request.budget;
  const std::uint64_t share = drops ? more : static_cast<std::uint64_t>(headroom * static_cast<double>(more));
  const std::uint64_t most = drops ? std::max(length, request.budget) : length + share;
  const std::uint64_t prompt = bytes_of(length), end = bytes_of(std::min(length + share, most));
  const std::uint64_t now = bytes_of(request.computed - request.dropped);
  const std::uint64_t least = more > 0 && !request.keeps_pages ? pages.next_bytes() : 0;
  const std::uint64_t drawn = std::max(end - std::min(end, prompt), least);
  return prompt - std::min(prompt, now) + request.beams * drawn + request.copy_bytes + (drops ? request.drop_bytes : 0);
}

}  // namespace

void StepPlan::clear() noexcept {
  shares.clear();
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

std::uint64_t sequence_bytes(const PlannedRequest& request, const PageCost& cost, std::uint64_t tokens) noexcept {
  return request.keeps_windows ? cost.bytes_of_all(tokens) : cost.bytes(tokens);
}

bool ends_in_drop(const PlannedRequest& request, std::uint64_t rows) noexcept {
  return request.budget != 0 && rows >= request.needed() && request.computed - request.dropped + rows >= request.budget;
}

std::uint64_t bytes_of_rows(const PlannedRequest& request, const PageCost& cost, std::uint64_t rows) noexcept {
  if (rows == 0) return 0;
  if (request.beams > 1 && request.needed() == 1) return request.next_bytes;
  const std::uint64_t held = request.computed - request.dropped;
  const std::uint64_t more = sequence_bytes(request, cost, held + rows), now = sequence_bytes(request, cost, held);
  return more - std::min(more, now) + request.copy_bytes + (ends_in_drop(request, rows) ? request.drop_bytes : 0);
}

std::uint64_t bytes_set_aside(const PlannedRequest& request, const PageCost& cost) noexcept {
  return request.keeps_pages ? bytes_to_come(request, cost, 0.0) : 0;
}

std::uint32_t rows_within(const CostModel& costs, const StepLoad& load, double seconds, std::uint64_t position,
                          std::uint32_t most) noexcept {
  std::uint32_t low = 0, high = most;  // binary search: `low` rows fit; more than `high` rows do not fit or are not wanted
  while (low < high) {
    const std::uint32_t middle = high - (high - low) / 2;
    if (costs.predict(with_rows(load, position, middle, true)) <= seconds) low = middle;
    else high = middle - 1;
  }
  return low;
}

// Makes one plan. The members are the working state of the planning.
class [[gnu::visibility("hidden")]] StepPlanner::Making {
 public:
  Making(StepPlanner& lists, std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting,
         const PageRoom& room, const CostModel& costs, const Policy& policy, const StepLimits& limits, double now,
         StepPlan& plan)
      : ranked_(lists.running_), queue_(lists.waiting_), marks_(lists.marks_), prompts_(lists.prompts_), shorter_(lists.shorter_),
        running_(running), waiting_(waiting), pages_(room.cost), costs_(costs), policy_(policy), limits_(limits), now_(now),
        plan_(plan), free_(room.free) {
    plan_.clear();
    marks_.assign(running_.size(), Mark::none);
    ranked_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) ranked_.push_back(ranked(running_, i, policy_, now_));
    std::sort(ranked_.begin(), ranked_.end());
    for (const PlannedRequest& request : running_) free_ -= std::min(free_, bytes_set_aside(request, pages_));
  }

  void decode() {
    for (std::size_t at = 0; at < ranked_.size(); ++at) {
      const std::size_t index = ranked_[at].index;
      const PlannedRequest& request = running_[index];
      if (marks_[index] != Mark::none || request.needed() != 1) continue;
      if (take(at, growth(request, 1))) add_decoding(index);
      else preempt(index);
    }
    is_awaited_ = !plan_.shares.empty();
  }

  // Assigns rows to requests that compute their prompts: to running requests, and to waiting requests that may be admitted.
  void prompts() {
    prompts_.clear();
    for (std::size_t at = 0; at < ranked_.size(); ++at) {
      const std::size_t index = ranked_[at].index;
      if (marks_[index] != Mark::none || running_[index].needed() == 1) continue;
      prompts_.push_back({.ranked = ranked_[at], .place = at, .left = running_[index].needed()});
    }
    enter();
    std::sort(prompts_.begin(), prompts_.end(), [](const Prompt& a, const Prompt& b) { return a.ranked < b.ranked; });
    for (auto begin = prompts_.begin(); begin != prompts_.end() && !is_full_;) {
      const auto end = std::find_if(begin, prompts_.end(), [&](const Prompt& one) { return one.ranked.rank != begin->ranked.rank; });
      serve_equals({begin, end});
      begin = end;
    }
    // No request got rows, because all prompts wait for pages. Pages become free only if a request gives up its pages, so the last request
    // in order is preempted.
    if (!plan_.shares.empty() || !plan_.preempted.empty()) return;
    const auto last = std::find_if(ranked_.rbegin(), ranked_.rend(), [&](const Ranked& one) { return !running_[one.index].keeps_pages; });
    if (last != ranked_.rend()) preempt(last->index);
  }

  // Adds drafts to decoding requests, as long as each draft increases the step's tokens a second by a margin (pays()). This is the case if
  //   chance that the draft is accepted / (seconds of its row + seconds to make it)  >  margin * tokens of the step / seconds of the step
  // The chance of a request's k-th draft is draft_chance^k, because the drafts before it must be accepted too. The step's tokens are its
  // rows without drafts, plus the chances of the drafts that were added before. All requests get their k-th draft before any request gets
  // draft k + 1. A draft is also left out if the step would then take longer than limits_.seconds. No request is preempted for drafts.
  // Exception: a request that wants drafts at any cost (draft_chance is infinite) gets each draft for which there are rows and pages.
  void draft() {
    if (!plan_.preempted.empty() || plan_.shares.empty()) return;
    const StepLoad none = plan_.load;
    double tokens = none.rows, seconds = costs_.drawing(none).value_or(costs_.predict(none)), rows_cost = 0.0;
    bool more = true;
    for (std::uint32_t k = 1; more; ++k) {
      more = false;
      for (StepPlan::Share& share : plan_.shares) {
        if (share.request >= running_.size() || share.rows != k) continue;  // skips prompts, and requests that did not get k - 1 drafts
        const PlannedRequest& request = running_[share.request];
        if (request.needed() != 1 || request.drafts < k || plan_.load.rows >= limits_.rows) continue;
        const StepLoad load = with_rows(plan_.load, request.computed + k, 1, true);
        const double with_it = costs_.more(none, load), cost = with_it - rows_cost + request.draft_seconds;
        const bool always = std::isinf(request.draft_chance);
        const double kept = always ? 1.0 : std::pow(request.draft_chance, k);
        if (!always && (!detail::pays({.tokens = kept, .seconds = cost}, {.tokens = tokens, .seconds = seconds}) || costs_.predict(load) > limits_.seconds)) continue;
        const std::uint64_t need = growth(request, k + 1) - growth(request, k);
        if (need > free_) continue;
        free_ -= need;
        plan_.bytes += need;
        plan_.load = load;
        ++share.rows;
        if (k > 1) add_branch(request, share);
        rows_cost = with_it;
        tokens += kept;
        seconds += cost;
        more = true;
      }
    }
  }

  void finish() { plan_.seconds = plan_.shares.empty() ? 0.0 : costs_.predict(plan_.load); }

 private:
  static constexpr std::uint32_t kLeastRows = 8;

  [[nodiscard]] const PlannedRequest& request_of(std::size_t index) const noexcept {
    return index < running_.size() ? running_[index] : waiting_[index - running_.size()];
  }
  [[nodiscard]] const PlannedRequest& request_of(const Prompt& prompt) const noexcept { return request_of(prompt.ranked.index); }

  // Adds waiting requests, in the policy's order, to the prompts that may get rows. Stops at the first request that does not fit into the
  // free pages together with the running requests and the requests added before.
  void enter() {
    const std::size_t places = free_places(running_, limits_);
    if (waiting_.empty() || places == 0 || !plan_.preempted.empty() || !batch_is_open()) return;
    std::uint64_t reserved = 0;
    for (const PlannedRequest& request : running_) reserved += request.keeps_pages ? 0 : still_to_come(request);
    for (const StepPlan::Share& share : plan_.shares) {  // free_ already excludes the pages of these rows
      const PlannedRequest& request = running_[share.request];
      if (!request.keeps_pages) reserved -= std::min(reserved, growth(request, share.rows));
    }
    rank_first(waiting_, policy_, now_, places, queue_);
    for (const Ranked& next : queue_) {
      const PlannedRequest& request = waiting_[next.index];
      const std::uint64_t need = still_to_come(request) + (request.suspended ? sequence_bytes(request, pages_, request.computed - request.dropped) : 0);
      const std::uint64_t own = need - std::min(need, request.shared);
      if (own > free_ || reserved > free_ - own) return;
      reserved += own;
      Prompt& prompt = prompts_.emplace_back(Prompt{.ranked = next, .left = request.needed() - request.saved, .bytes = own});
      prompt.ranked.index += running_.size();
    }
  }

  // Assigns rows to prompts to which the policy gives the same rank, in order of arrival. Prompts that wait for another request
  // (PlannedRequest::awaits) come last, because that request may be one of the other prompts.
  void serve_equals(std::span<Prompt> equals) {
    for (const bool awaits : {false, true}) {
      for (std::size_t i = 0; i < equals.size() && !is_full_; ++i) {
        const bool is_next = equals[i].rows == 0 && (request_of(equals[i]).awaits != PlannedRequest::kNobody) == awaits;
        if (is_next && comes_by_itself(equals[i])) serve_first(equals[i], equals.subspan(i + 1));
      }
    }
  }

  // Divides the rows that the step has left for prompts. If `behind` has prompts so short that they still finish before `first`: `first`
  // gets only a share of the rows (StepLimits::first_share), then these prompts are served, shortest first. The rows that remain then, or
  // all rows if `behind` has no such prompt, go to `first`.
  void serve_first(Prompt& first, std::span<Prompt> behind) {
    constexpr auto kAll = std::numeric_limits<std::uint32_t>::max();
    const double share = std::clamp(limits_.first_share, 0.0, 1.0);
    const double shorter = (1.0 - share) * static_cast<double>(first.left);
    shorter_.clear();
    for (Prompt& other : behind) {
      if (other.rows == 0 && static_cast<double>(other.left) <= shorter) shorter_.push_back(&other);
    }
    std::sort(shorter_.begin(), shorter_.end(), [](const Prompt* a, const Prompt* b) { return std::pair(a->left, a) < std::pair(b->left, b); });
    is_awaited_ = is_awaited_ || !shorter_.empty();
    if (!shorter_.empty()) serve(first, static_cast<std::uint32_t>(std::ceil(share * room_for(first, kAll))));
    for (Prompt* const other : shorter_) {
      if (comes_by_itself(*other)) serve(*other, kAll);
    }
    serve(first, kAll);
  }

  // Assigns up to `most` more rows of the step to the prompt; fewer if the step's budget or the free pages do not allow more.
  void serve(Prompt& prompt, std::uint32_t most) {
    const bool has_given_way = prompt.place != kWaits && marks_[prompt.ranked.index] == Mark::preempted;
    if (is_full_ || has_given_way || prompt.rows == prompt.left) return;
    const PlannedRequest& request = request_of(prompt);
    std::uint32_t rows = room_for(prompt, static_cast<std::uint32_t>(std::min<std::uint64_t>(prompt.left - prompt.rows, most)));
    if (is_full_ = rows == 0; is_full_) return;  // no prompt can get another row in this step
    if (prompt.place == kWaits) {
      const std::uint64_t need = prompt.rows == 0 ? prompt.bytes : 0;
      free_ -= need;
      plan_.bytes += need;
    } else {
      const auto more = [&] { return growth(request, prompt.rows + rows) - growth(request, prompt.rows); };
      const auto is_short = [&] { return !request.keeps_pages && more() > free_; };
      while (rows > 1 && is_short()) rows /= 2;  // computes fewer rows, to avoid preempting other requests
      if (prompt.rows > 0 && is_short()) return;
      if (!take(prompt.place, more())) return;
    }
    const std::uint64_t position = begin_of(prompt);
    if (prompt.rows == 0) {
      prompt.share = plan_.shares.size();
      add(prompt.ranked.index, position, rows, rows == prompt.left);
    } else {
      plan_.shares[prompt.share].rows += rows;
      plan_.load = with_rows(plan_.load, position, rows, prompt.rows + rows == prompt.left);
    }
    prompt.rows += rows;
    has_prompts_ = true;
  }

  // Returns the position of the first row of the prompt that is not planned yet.
  [[nodiscard]] std::uint64_t begin_of(const Prompt& prompt) const noexcept {
    const PlannedRequest& request = request_of(prompt);
    return request.prompt + request.drawn - prompt.left + prompt.rows;
  }

  // Returns whether the prompt should get rows. A waiting prompt should not, if a request in this step already computes the same beginning.
  [[nodiscard]] bool comes_by_itself(const Prompt& prompt) const noexcept {
    const std::uint64_t awaited = request_of(prompt).awaits;
    if (prompt.place != kWaits || awaited == PlannedRequest::kNobody) return true;
    return std::ranges::none_of(plan_.shares, [&](const StepPlan::Share& share) { return request_of(share.request).order == awaited; });
  }

  // Called when a request gets its second draft, its third draft and so on. Allows the request one more branch of drafts (Share::branches),
  // unless it has all its branches or the free pages do not suffice.
  void add_branch(const PlannedRequest& request, StepPlan::Share& share) noexcept {
    const std::uint64_t bytes = pages_.next_bytes();
    if (share.branches == request.branches || bytes > free_) return;
    ++share.branches;
    free_ -= bytes;
    plan_.bytes += bytes;
  }

  [[nodiscard]] std::uint64_t growth(const PlannedRequest& request, std::uint64_t rows) const noexcept {
    return bytes_of_rows(request, pages_, rows);
  }

  [[nodiscard]] std::uint64_t still_to_come(const PlannedRequest& request) const noexcept {
    return bytes_to_come(request, pages_, limits_.headroom);
  }

  // Reserves `need` bytes of pages for the request ranked_[at]. If too few are free, preempts requests after it in ranked_. Returns false
  // if even this is not enough.
  bool take(std::size_t at, std::uint64_t need) {
    if (running_[ranked_[at].index].keeps_pages) {  // the request's pages were set aside, and do not count as free
      plan_.bytes += need;
      return true;
    }
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

  // Adds one row for a decoding request, or one row for each beam of a beam search.
  void add_decoding(std::size_t index) {
    const PlannedRequest& request = running_[index];
    add(index, request.computed, 1, true);
    for (std::uint32_t beam = 1; beam < request.beams; ++beam) plan_.load = with_rows(plan_.load, request.computed, 1, true);
    plan_.shares.back().rows = request.beams;
  }

  void add(std::size_t index, std::uint64_t position, std::uint32_t rows, bool draws) {
    if (index < running_.size()) marks_[index] = Mark::served;
    plan_.shares.push_back({.request = index, .rows = rows});
    plan_.load = with_rows(plan_.load, position, rows, draws);
  }

  // Returns how many more rows of the prompt fit into this step; at most `most`.
  [[nodiscard]] std::uint32_t room_for(const Prompt& prompt, std::uint32_t most) noexcept {
    const std::uint64_t position = begin_of(prompt);
    if (!has_prompts_) set_budget(position, prompt.left);
    const std::uint32_t rows = std::min(most, budget_rows_ - std::min(budget_rows_, plan_.load.rows));
    if (!is_awaited_) return rows;
    const std::uint32_t least = has_prompts_ ? 0 : std::min(rows, 1u);
    return std::max(rows_within(costs_, plan_.load, budget_seconds_, position, rows), least);
  }

  // Sets the limits of the step's rows and seconds. Exception: if the rows of decoding requests leave too little time for kLeastRows rows of
  // the prompt (for its last rows, if fewer are left), all prompts together get at most kLeastRows rows, so that they make slow progress, and
  // the limit of seconds is increased by 1.5 times the predicted time of the decoding rows.
  void set_budget(std::uint64_t position, std::uint64_t left) noexcept {
    budget_rows_ = limits_.rows;
    budget_seconds_ = limits_.seconds;
    const std::uint32_t room = budget_rows_ - std::min(budget_rows_, plan_.load.rows), most = std::min(room, kLeastRows);
    const auto least = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, most));
    if (!is_awaited_ || rows_within(costs_, plan_.load, budget_seconds_, position, least) == least) return;
    budget_seconds_ += 1.5 * costs_.predict(plan_.load);
    budget_rows_ = plan_.load.rows + most;
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
  std::vector<Prompt>& prompts_;
  std::vector<Prompt*>& shorter_;
  std::span<const PlannedRequest> running_, waiting_;
  const PageCost& pages_;
  const CostModel& costs_;
  const Policy& policy_;
  const StepLimits& limits_;
  double now_;
  StepPlan& plan_;
  std::uint64_t free_;
  bool is_awaited_ = false;  // true: some request waits for the end of this step, because it decodes or has a short prompt
  bool has_prompts_ = false, is_full_ = false;  // has_prompts_: a prompt has rows in the step; is_full_: no prompt can get more rows
  // Limits of the step's rows and seconds. set_budget() sets them before the first prompt gets rows.
  std::uint32_t budget_rows_ = 0;
  double budget_seconds_ = 0.0;
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
      if (!(one < queue.front())) continue;  // the front of the heap is the last in order of the requests that were kept
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
  making.prompts();
  making.draft();
  making.finish();
}

}  // namespace tessera
