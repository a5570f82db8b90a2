// Requests that drop tokens: with a budget of tokens, or streams. Once tokens have been dropped, a recompute would not
// give the same keys and values: the dropped tokens were seen by those that stay. So such a request keeps its pages
// until its end, where there is no kv_file, and before its first drop it makes sure that it can:
//
//   budget 148, 129 tokens are left by a drop, pages of 32 tokens, two samples of a prompt of 185 tokens
//   before the drop    6 pages, shared by both; each can give way and is computed again
//   the drop needs     5 pages: copies of the shared ones that stay; and one set aside, to grow from 129 to 148 tokens
//   behind the drop    5 pages of its own, which it keeps
//
// If these pages are not there, the request gives way before the drop, as long as it still can. What has been set aside
// nobody else gets. So those who keep their pages end, whatever the others need.
#include <algorithm>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/run/streams.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using detail::make_error;

namespace {

std::uint64_t left_by_drop(const TokenBudget& budget, const StreamOptions& stream) noexcept {
  return budget.tokens != 0 ? tokens_left(budget) : std::uint64_t{stream.sinks} + stream.window;
}

}  // namespace

// When drops come, and what they take beside copies. `most`: tokens that one of its sequences draws at most.
void Scheduler::State::plan_drops(Active& active, const Request& request, std::uint64_t most) const {
  const Session::State* const own = request.session ? request.session->state_.get() : nullptr;
  const KvOptions kv =
      own != nullptr ? own->kv_options : detail::resolve(request.session_options.kv, shared->options.kv);
  const StreamOptions stream = own != nullptr ? own->stream : request.session_options.stream;
  PlannedRequest& planned = active.planned;
  const std::uint64_t at = kv.budget.tokens != 0 ? kv.budget.tokens : stream.window != 0 ? context_of(request) : 0;
  if (kv.kind != KvKind::paged || at == 0 || planned.prompt + most <= at) return;
  planned.budget = at;
  const auto layout = detail::kv_layout(shared->model.spec, kv);
  planned.keeps_windows = stream.window != 0 || (layout && !detail::leaves_windows(kv.budget, *layout));
  if (!planned.keeps_windows) {
    const std::uint64_t left = left_by_drop(kv.budget, stream),
                        pages = (left + page_cost.page_tokens - 1) / page_cost.page_tokens;
    for (const PageCost::Group& group : page_cost.groups) {
      if (group.window != 0)
        active.passed_bytes +=
            std::min(pages, (group.window + page_cost.page_tokens - 1) / page_cost.page_tokens + 2) * group.page_bytes;
    }
  }
  planned.drop_bytes = active.passed_bytes;
  active.has_earlier_votes = own != nullptr && own->votes.voted > 0;
  planned.keeps_pages = own != nullptr && (own->kv.edited() || active.has_earlier_votes) && shared->options.kv_file.empty();
}

// Bytes of the sequence's pages [first, last) that another request's sequence has too.
std::uint64_t Scheduler::State::shared_bytes(const Active& active, std::uint64_t first, std::uint64_t last) const {
  const KvCache& kv = active.session->kv();
  const KvLayout& layout = kv.layout();
  const KvView own = kv.view();
  std::uint64_t bytes = 0;
  std::vector<std::pair<KvView, std::uint64_t>> others;  // and how many pages they have
  const auto add = [&](const Active& other) {
    const std::optional<Session>& session = other.session ? other.session : other.wanted.session;
    if (&other == &active || !session || session->kv().kind() != KvKind::paged || session->kv().suspended()) return;
    if (session->kv().length() > 0)
      others.emplace_back(session->kv().view(), session->kv().layout().pages(session->kv().length()));
  };
  for (const std::span<const ActivePtr> list :
       {std::span<const ActivePtr>(running), std::span<const ActivePtr>(held_back),
        std::span<const ActivePtr>(admitted), waiting.requests()}) {
    for (const ActivePtr& other : list) {
      if (other != nullptr) add(*other);
    }
  }
  last = std::min(last, layout.pages(kv.length()));
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    if (layout.groups[group].is_recurrent()) continue;
    for (std::uint64_t page = first; page < last; ++page) {
      const std::byte* const at = own.pages[group][page];
      const auto has_it = [&](const auto& other) {
        return page < other.second && other.first.pages[group][page] == at;
      };
      if (at != nullptr && std::ranges::any_of(others, has_it)) bytes += layout.groups[group].page_bytes;
    }
  }
  return bytes;
}

// Brings in line what the next row and the next drop of a request that has pages take.
void Scheduler::State::count_drop(Active& active) {
  PlannedRequest& planned = active.planned;
  const Session::State& session = *active.session->state_;
  planned.copy_bytes = 0;
  if (session.kv.kind() != KvKind::paged || session.kv.suspended() || active.search) return;
  const std::uint64_t page_tokens = session.kv.layout().page_tokens, full = session.kv.length() / page_tokens;
  if (session.shares_last_page && session.kv.length() % page_tokens != 0)
    planned.copy_bytes = shared_bytes(active, full, full + 1);
  if (planned.budget == 0) return;
  const bool has_file = !shared->options.kv_file.empty();
  planned.keeps_pages = !has_file && !can_give_way(active);
  const bool is_near =
      planned.needed() <= options.limits.rows && ends_in_drop(planned, planned.needed() + planned.drafts);
  if (!is_near && !planned.keeps_pages) {
    planned.drop_bytes = active.passed_bytes;
    return;
  }
  if (!is_near && active.counted_at == planned.dropped) return;  // less is shared from then on, never more
  active.counted_at = planned.dropped;
  const std::uint64_t left = left_by_drop(session.kv_options.budget, session.stream);
  const std::uint64_t copies = shared_bytes(active, 0, (left + page_tokens - 1) / page_tokens);
  planned.drop_bytes = active.passed_bytes + copies;
  if (copies == 0 || has_file || planned.keeps_pages) return;
  // The pages that it lets go of stay with others: none of them is there to grow with.
  planned.drop_bytes += active.passed_bytes + sequence_bytes(planned, page_cost, planned.budget) -
                        sequence_bytes(planned, page_cost, left);
}

std::uint64_t Scheduler::State::set_aside() const noexcept {
  std::uint64_t bytes = 0;
  for (const std::vector<ActivePtr>* list : {&running, &held_back, &admitted}) {
    for (const ActivePtr& active : *list)
      bytes += active != nullptr && active->decoding ? bytes_set_aside(active->planned, page_cost) : 0;
  }
  return bytes;
}

// Before rows behind which tokens are dropped for the first time: whether there are the pages that the request then
// keeps. A plan believes that whoever gives way frees all of its pages, and cannot know which of them others hold as
// well.
Status Scheduler::State::check_drop(Active& active, std::uint64_t rows) {
  if (shared->options.kv_budget == 0 || !shared->options.kv_file.empty() || active.planned.keeps_pages) return {};
  if (!ends_in_drop(active.planned, rows)) return {};
  count_drop(active);
  const std::uint64_t need = bytes_of_rows(active.planned, page_cost, rows), free = room().free,
                      taken = set_aside() + for_drops;
  if (free < taken || free - taken < need) {
    return make_error(ErrorCode::cache_full,
                      "dropping tokens takes {} bytes of KV pages, and {} are free, {} of them for others: give the "
                      "engine a larger KV budget",
                      need, free, std::min(free, taken));
  }
  for_drops += active.planned.drop_bytes;
  return {};
}

}  // namespace tessera
