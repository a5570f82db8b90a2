// The state of a KvCache: how long the sequence is, which pages and checkpoints were given back, and which pages were offered to the
// prefix index. A group is all layers with the same window. The recurrent layers are one more group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "core/error.hpp"
#include "kv/kv_storage.hpp"
#include "kv/other_parts.hpp"

namespace tessera {

using detail::KvStorage;
using detail::make_error;

// Returns a cache's storage; nullptr: the cache is an empty handle.
[[nodiscard]] KvStorage* storage_of(const KvCache& cache) noexcept;
// Returns the cache's Elsewhere, which says what parts of the cache lie in other processes (other_parts.hpp); nullptr: the cache is an
// empty handle.
[[nodiscard]] detail::Elsewhere* elsewhere_pointer(const KvCache& cache) noexcept;

struct KvCache::State {
  State(std::unique_ptr<KvStorage> from, KvCacheOptions how)
      : options(std::move(how)),
        storage(std::move(from)),
        windows(storage->groups(), 0),
        first(storage->groups(), 0),
        has_state(storage->layout().has_state()) {
    if (options.passed == PassedPages::keep) return;
    for (std::size_t group = 0; group < windows.size(); ++group) windows[group] = layout().groups[group].window;
  }

  [[nodiscard]] const KvLayout& layout() const noexcept { return storage->layout(); }
  [[nodiscard]] std::uint64_t page_tokens() const noexcept { return layout().page_tokens; }

  // Offers to the prefix index the full pages that were not offered before.
  void publish(const KvInputs& sequence) noexcept {
    const std::uint64_t size = page_tokens();
    const std::uint64_t full = std::min<std::uint64_t>(length, sequence.size()) / size;
    if (published >= full) return;
    for (KvInputs rest = sequence.behind(sequence.first(published * size)); published < full; ++published) {
      const KvInputs page = rest.first(size);
      if (!page.are_known() || !storage->publish(options.prefix_identity, published, page)) break;
      rest = rest.behind(page);
    }
    if (published < full) can_publish = false;  // a page can only be offered if the page before it was, so no later page can be
  }
  void limit_published(std::uint64_t pages) noexcept {
    if (pages >= published) return;
    published = pages;
    storage->limit_published(pages);
  }

  // Returns the first position that the row at `position` sees in the group's layers. No later row sees an earlier position.
  [[nodiscard]] std::uint64_t first_visible(std::size_t group, std::uint64_t position) const noexcept {
    const std::uint64_t window = windows[group];
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
  // Returns whether the sequence could go on at `position`: every group still holds all positions that the row at `position` sees.
  [[nodiscard]] bool can_go_on_from(std::uint64_t position) const noexcept {
    for (std::size_t group = 0; group < first.size(); ++group) {
      if (first_visible(group, position) < first[group]) return false;
    }
    return true;
  }

  // For a removal of tokens before position `end`: returns whether the group can do without its pages before `end`. True if the cache may
  // give back such pages (PassedPages::give_back_edited), and the window of the sequence's next row begins at `end` or later, even if the
  // sequence is shortened by one page afterwards.
  [[nodiscard]] bool sees_nothing_before(std::size_t group, std::uint64_t end) const noexcept {
    return options.passed == PassedPages::give_back_edited && windows[group] != 0 && length - end >= windows[group] + page_tokens();
  }
  [[nodiscard]] Error has_passed(std::size_t group) const {
    return make_error(ErrorCode::invalid_state,
                      "tokens below {} have left the model's window of {} and are no longer held: this sequence cannot be "
                      "edited",
                      first[group], layout().groups[group].window);
  }
  // Marks the cache as edited, because the keys and values from `position` on are about to change. From now on, the pages with these keys
  // and values do not count as offered to the prefix index: other sequences must not find changed pages.
  void mark_edited(std::uint64_t position) noexcept {
    edited = true;
    can_publish = false;
    limit_published(position / page_tokens());
  }

  // Returns whether every held page has all its tokens. If this cache was filled from a cache with smaller pages, the first page of a
  // group may lack its first tokens. Other sequences must not find a page that lacks tokens.
  [[nodiscard]] bool holds_whole_pages() const noexcept {
    return std::ranges::all_of(first, [&](std::uint64_t position) { return position % page_tokens() == 0; });
  }

  // Gives back the pages of groups with windows that lie before the window of the next row. Keeps one page more than the window needs, so
  // that the sequence can still be shortened by a few tokens.
  void drop_behind_windows() noexcept {
    if (edited && options.passed != PassedPages::give_back_edited) return;
    for (std::size_t group = 0; group < first.size(); ++group) {
      const std::uint64_t pages = first_visible(group, length) / page_tokens();
      if (pages < 2) continue;
      storage->drop_front(group, pages - 1);
      first[group] = std::max(first[group], (pages - 1) * page_tokens());
    }
  }

  // Gives back old checkpoints, so that the newest options.checkpoints of them remain. The live state is not a checkpoint and stays.
  void drop_old_states() noexcept {
    const std::uint64_t full = length / page_tokens();
    if (!has_state || full <= options.checkpoints) return;
    const std::uint64_t first_kept = std::min(full - options.checkpoints, (length - 1) / page_tokens());
    storage->drop_states(first_state, first_kept);
    first_state = std::max(first_state, first_kept);
  }

  // Returns the largest length, at most `tokens`, to which the sequence can be truncated and then go on.
  [[nodiscard]] std::uint64_t last_beginning(std::uint64_t tokens) const noexcept {
    if (!has_state) return can_go_on_from(tokens) ? tokens : 0;
    const std::uint64_t size = page_tokens();
    std::uint64_t page = tokens / size;
    while (page > 0 && !(storage->has_state(page - 1) && can_go_on_from(page * size))) --page;
    return page * size;
  }

  // Empties the cache, so that it is like a new one.
  void reset() noexcept {
    length = 0;
    first_state = 0;
    limit_published(0);
    storage->shrink(0);
    std::ranges::fill(first, 0);
    can_publish = true;
    edited = false;
  }

  // A friend defines storage_of(), because KvCache::State is private.
  [[nodiscard]] static KvStorage* storage_in(const KvCache& cache) noexcept {
    return cache.state_ == nullptr ? nullptr : cache.state_->storage.get();
  }
  friend KvStorage* storage_of(const KvCache& cache) noexcept { return storage_in(cache); }
  [[nodiscard]] static detail::Elsewhere* elsewhere_in(const KvCache& cache) noexcept {
    return cache.state_ == nullptr ? nullptr : &cache.state_->elsewhere;
  }
  friend detail::Elsewhere* elsewhere_pointer(const KvCache& cache) noexcept { return elsewhere_in(cache); }

  KvCacheOptions options;  // declared before the storage, so that it is destroyed after it: the options may own the storage's Memory
  std::unique_ptr<KvStorage> storage;
  detail::Elsewhere elsewhere;
  std::vector<std::uint64_t> windows;  // [group]: pages that this window has passed are given back; 0: pages are never given back
  std::vector<std::uint64_t> first;    // [group]: the first position whose page is held; 0 for recurrent layers
  bool has_state;                      // true: there are recurrent layers
  std::uint64_t first_state = 0;       // index of a page; pages before it have no checkpoint
  std::uint64_t length = 0;            // tokens in the cache
  std::uint64_t published = 0;         // how many of the first pages were offered to the prefix index or taken from it
  bool can_publish = true;
  bool edited = false;
};

}  // namespace tessera
