// The state of a KvCache: lengths, what windows and checkpoints have given back, and what the prefix index may have. A group is the layers
// with the same window; the recurrent layers are a group too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "core/error.hpp"
#include "kv/kv_storage.hpp"

namespace tessera {

using detail::KvStorage;
using detail::make_error;

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

  // Offers the full pages that have not been offered yet.
  void publish(const KvInputs& sequence) noexcept {
    const std::uint64_t size = page_tokens();
    const std::uint64_t full = std::min<std::uint64_t>(length, sequence.size()) / size;
    if (published >= full) return;
    for (KvInputs rest = sequence.behind(sequence.first(published * size)); published < full; ++published) {
      const KvInputs page = rest.first(size);
      if (!page.are_known() || !storage->publish(options.prefix_identity, published, page)) break;
      rest = rest.behind(page);
    }
    if (published < full) can_publish = false;  // later pages would have no parent in the index
  }
  void limit_published(std::uint64_t pages) noexcept {
    if (pages >= published) return;
    published = pages;
    storage->limit_published(pages);
  }

  // Returns the first position of a group that the row at `position` sees; later rows see no earlier one.
  [[nodiscard]] std::uint64_t first_visible(std::size_t group, std::uint64_t position) const noexcept {
    const std::uint64_t window = windows[group];
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
  // Returns whether every group holds all positions that the row at `position` and later rows see.
  [[nodiscard]] bool can_go_on_from(std::uint64_t position) const noexcept {
    for (std::size_t group = 0; group < first.size(); ++group) {
      if (first_visible(group, position) < first[group]) return false;
    }
    return true;
  }

  // Returns whether a removal of tokens before `end` can do without the group's pages before `end`: its window does not see them any more,
  // even after a roll-back by a page.
  [[nodiscard]] bool sees_nothing_before(std::size_t group, std::uint64_t end) const noexcept {
    return options.passed == PassedPages::give_back_edited && windows[group] != 0 && length - end >= windows[group] + page_tokens();
  }
  [[nodiscard]] Error has_passed(std::size_t group) const {
    return make_error(ErrorCode::invalid_state,
                      "tokens below {} have left the model's window of {} and are no longer held: this sequence cannot be "
                      "edited",
                      first[group], layout().groups[group].window);
  }
  // Marks the cache as edited: records from `position` on are about to change.
  void mark_edited(std::uint64_t position) noexcept {
    edited = true;
    can_publish = false;
    limit_published(position / page_tokens());
  }

  // Returns whether every page has all its tokens. In a cache that was filled from a cache with smaller pages, a group's first page may
  // lack its beginning; other sequences must not find such a page.
  [[nodiscard]] bool holds_whole_pages() const noexcept {
    return std::ranges::all_of(first, [&](std::uint64_t position) { return position % page_tokens() == 0; });
  }

  // Gives back pages that windows have passed. One page more than the window needs is kept for a short roll-back.
  void drop_behind_windows() noexcept {
    if (edited && options.passed != PassedPages::give_back_edited) return;
    for (std::size_t group = 0; group < first.size(); ++group) {
      const std::uint64_t pages = first_visible(group, length) / page_tokens();
      if (pages < 2) continue;
      storage->drop_front(group, pages - 1);
      first[group] = std::max(first[group], (pages - 1) * page_tokens());
    }
  }

  // Gives back all checkpoints but the newest ones (options.checkpoints). The live state stays.
  void drop_old_states() noexcept {
    const std::uint64_t full = length / page_tokens();
    if (!has_state || full <= options.checkpoints) return;
    const std::uint64_t first_kept = std::min(full - options.checkpoints, (length - 1) / page_tokens());
    storage->drop_states(first_state, first_kept);
    first_state = std::max(first_state, first_kept);
  }

  // Returns the length of the longest beginning of the sequence, at most `tokens`, from which the sequence can go on.
  [[nodiscard]] std::uint64_t last_beginning(std::uint64_t tokens) const noexcept {
    if (!has_state) return can_go_on_from(tokens) ? tokens : 0;
    const std::uint64_t size = page_tokens();
    std::uint64_t page = tokens / size;
    while (page > 0 && !(storage->has_state(page - 1) && can_go_on_from(page * size))) --page;
    return page * size;
  }

  // Makes the cache like a new one.
  void reset() noexcept {
    length = 0;
    first_state = 0;
    limit_published(0);
    storage->shrink(0);
    std::ranges::fill(first, 0);
    can_publish = true;
    edited = false;
  }

  KvCacheOptions options;  // declared before the storage, whose Memory it may own
  std::unique_ptr<KvStorage> storage;
  std::vector<std::uint64_t> windows;  // [group]: window that gives pages back; 0: no page is given back
  std::vector<std::uint64_t> first;    // [group]: first position that is held; 0 for recurrent layers
  bool has_state;                      // there are recurrent layers
  std::uint64_t first_state = 0;       // pages before it have no checkpoint
  std::uint64_t length = 0;            // tokens
  std::uint64_t published = 0;         // number of first pages that the index knows, or knew
  bool can_publish = true;
  bool edited = false;
};

}  // namespace tessera
