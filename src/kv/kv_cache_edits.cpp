// KvCache::edit(), begin_removal() and end_removal(): changes in the middle of a sequence. edit() and begin_removal() make the affected
// pages writable; then the caller changes or moves keys and values. After a removal, end_removal() shortens the sequence, and updates for
// each group with a window the first position that the group still has.
#include "core/empty.hpp"
#include "kv/kv_cache_state.hpp"

namespace tessera {

using detail::guard;

namespace {

Status check_has_no_state(bool has_state) {
  if (!has_state) return {};
  return make_error(ErrorCode::unsupported,
                    "this model has recurrent layers, whose state knows all tokens: none of them can be changed or taken out. "
                    "Truncate, and append what is to stay");
}

}  // namespace

Status KvCache::edit(std::uint64_t first, std::uint64_t last) noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  State& s = *state_;
  TESSERA_TRY_STATUS(check_has_no_state(s.has_state));
  for (std::size_t group = 0; group < s.first.size(); ++group) {
    if (s.first[group] != 0) return s.has_passed(group);
  }
  TESSERA_TRY_STATUS(resume());
  last = std::min(last, s.length);
  if (first < last) {
    TESSERA_TRY_STATUS(guard([&] { return s.storage->make_writable(first / s.page_tokens(), s.layout().pages(last)); }));
  }
  s.mark_edited(first);
  return {};
}

Result<KvRemoval> KvCache::begin_removal(std::uint64_t first, std::uint64_t end, std::uint64_t tokens) noexcept {
  return guard([&]() -> Result<KvRemoval> {
    if (state_ == nullptr) return detail::empty_handle("KvCache");
    State& s = *state_;
    TESSERA_TRY_STATUS(check_has_no_state(s.has_state));
    if (first > end || end > s.length || tokens > end - first) {
      return make_error(ErrorCode::invalid_argument,
                        "{} tokens between {} and {} of a cache that holds {}: they are to lie within it", tokens,
                        first, end, s.length);
    }
    const std::uint64_t pages = s.layout().pages(s.length - tokens);
    KvRemoval removal{.tokens = tokens, .from = std::vector<std::uint64_t>(s.first.size(), 0)};
    std::vector<std::uint64_t> again(s.first.size(), pages);
    for (std::size_t group = 0; group < s.first.size(); ++group) {
      if (s.sees_nothing_before(group, end)) {
        removal.from[group] = std::max(s.first[group], end);
        again[group] = (removal.from[group] - tokens) / s.page_tokens();
      } else if (s.first[group] != 0) {
        return s.has_passed(group);
      }
    }
    TESSERA_TRY_STATUS(resume());
    std::vector<std::uint64_t> front;
    for (std::size_t group = 0; group < s.first.size(); ++group) front.push_back(s.storage->front(group));
    TESSERA_TRY_STATUS(s.storage->take_again(again, pages));
    if (Status status = guard([&] { return s.storage->make_writable(first / s.page_tokens(), pages); }); !status) {
      for (std::size_t group = 0; group < front.size(); ++group) s.storage->drop_front(group, std::min(pages, front[group]));
      return status.error();
    }
    s.mark_edited(first);
    return removal;
  });
}

void KvCache::end_removal(const KvRemoval& removal) noexcept {
  if (state_ == nullptr || removal.from.size() != state_->first.size() || removal.tokens > state_->length) return;
  State& s = *state_;
  for (std::size_t group = 0; group < s.first.size(); ++group) {  // returns if begin_removal() cannot have returned these values
    const std::uint64_t from = removal.from[group];
    if (from == 0) continue;
    if (from > s.length || from < removal.tokens || (from - removal.tokens) / s.page_tokens() < s.storage->front(group))
      return;
  }
  for (std::size_t group = 0; group < s.first.size(); ++group) {
    if (removal.from[group] == 0) continue;
    s.first[group] = removal.from[group] - removal.tokens;
    s.storage->drop_front(group, s.first[group] / s.page_tokens());
  }
  truncate(s.length - removal.tokens);
  s.drop_behind_windows();
}

}  // namespace tessera
