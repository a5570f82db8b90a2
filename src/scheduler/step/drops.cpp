#include "scheduler/step/drops.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"

namespace tessera::detail {
namespace {

std::uint64_t left_by_drop(const TokenBudget& budget, const StreamOptions& stream) noexcept {
  return budget.tokens != 0 ? tokens_left(budget) : std::uint64_t{stream.sinks} + stream.window;
}

}  // namespace

void plan_drops(const Setup& setup, const Request& request, std::uint64_t most, Active& active) {
  const KvOptions kv = setup.kv_options_of(request);
  const StreamOptions stream = setup.stream_of(request);
  PlannedRequest& planned = active.planned;
  const std::uint64_t at = kv.budget.tokens != 0 ? kv.budget.tokens : stream.window != 0 ? setup.context_of(request) : 0;
  if (kv.kind != KvKind::paged || at == 0 || planned.prompt + most <= at) return;
  planned.budget = at;
  const auto layout = kv_layout(setup.engine.spec(), kv);
  planned.keeps_windows = stream.window != 0 || (layout && !leaves_windows(kv.budget, *layout));
  if (!planned.keeps_windows) active.passed_bytes += setup.page_cost.window_bytes(left_by_drop(kv.budget, stream));
  planned.drop_bytes = active.passed_bytes;
  active.has_earlier_votes = request.session && view_of(state_of(*request.session)).has_voted;
  planned.keeps_pages = request.session && (request.session->edited() || active.has_earlier_votes) && !setup.has_kv_file();
}

// Returns the bytes of those of the sequence's pages [first, last) that sequences of other requests share.
std::uint64_t Drops::shared_bytes(const Active& active, std::uint64_t first, std::uint64_t last) const {
  const KvCache& kv = active.session->kv();
  const KvLayout& layout = kv.layout();
  const KvView own = kv.view();
  std::uint64_t bytes = 0;
  std::vector<std::pair<KvView, std::uint64_t>> others;  // views of the other sequences, each with its number of pages
  const auto add = [&](const Active& other) {
    const std::optional<Session>& session = other.session ? other.session : other.wanted.session;
    if (&other == &active || !session || session->kv().kind() != KvKind::paged || session->kv().suspended()) return;
    if (session->kv().length() > 0)
      others.emplace_back(session->kv().view(), session->kv().layout().pages(session->kv().length()));
  };
  requests_.each(add);
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

void Drops::count(Active& active) const {
  PlannedRequest& planned = active.planned;
  const SessionView session = view_of(state_of(*active.session));
  planned.copy_bytes = 0;
  if (session.kv.kind() != KvKind::paged || session.kv.suspended() || active.search) return;
  const std::uint64_t page_tokens = session.kv.layout().page_tokens, full = session.kv.length() / page_tokens;
  if (session.shares_last_page && session.kv.length() % page_tokens != 0)
    planned.copy_bytes = shared_bytes(active, full, full + 1);
  if (planned.budget == 0) return;
  const bool has_file = setup_.has_kv_file();
  planned.keeps_pages = !has_file && !preemption_.can_give_way(active);
  const bool is_near =
      planned.needed() <= setup_.options.limits.rows && ends_in_drop(planned, planned.needed() + planned.drafts);
  if (!is_near && !planned.keeps_pages) {
    planned.drop_bytes = active.passed_bytes;
    return;
  }
  if (!is_near && active.counted_at == planned.dropped) return;  // already counted for this drop; the number of shared pages can only fall
  active.counted_at = planned.dropped;
  const std::uint64_t left = left_by_drop(session.kv_options.budget, session.stream);
  const std::uint64_t copies = shared_bytes(active, 0, (left + page_tokens - 1) / page_tokens);
  planned.drop_bytes = active.passed_bytes + copies;
  if (copies == 0 || has_file || planned.keeps_pages) return;
  // If other sequences share the pages that a drop removes from this sequence, the pages stay in memory. So this sequence cannot grow into
  // them again: it needs new pages for the tokens from `left` to the budget.
  planned.drop_bytes += active.passed_bytes + sequence_bytes(planned, setup_.page_cost, planned.budget) -
                        sequence_bytes(planned, setup_.page_cost, left);
}

// Returns the bytes that are reserved for all requests that can no longer give up their pages.
std::uint64_t Drops::set_aside() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto list : {requests_.running(), requests_.held_back(), requests_.admitted()}) {
    for (const ActivePtr& active : list) {
      if (active != nullptr && active->decoding) bytes += bytes_set_aside(active->planned, setup_.page_cost);
    }
  }
  return bytes;
}

Status Drops::check(Active& active, std::uint64_t rows) {
  if (!setup_.is_bounded() || setup_.has_kv_file() || active.planned.keeps_pages) return {};
  if (!ends_in_drop(active.planned, rows)) return {};
  count(active);
  const std::uint64_t need = bytes_of_rows(active.planned, setup_.page_cost, rows), free = setup_.free_bytes(),
                      taken = set_aside() + taken_;
  if (free < taken || free - taken < need) {
    return make_error(ErrorCode::cache_full,
                      "dropping tokens takes {} bytes of KV pages, and {} are free, {} of them for others: give the "
                      "engine a larger KV budget",
                      need, free, std::min(free, taken));
  }
  taken_ += active.planned.drop_bytes;
  return {};
}

}  // namespace tessera::detail
