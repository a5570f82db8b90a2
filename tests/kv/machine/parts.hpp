// What operations are made of: calls to the library with what it promises of each.
#pragma once

#include "invariants.hpp"

namespace tessera::tests {

inline void Machine::expect_out_of_memory(const Error& error) {
  expect(struck_last_, "refused although no allocation failed: {}", error.message());
  expect(error.code() == ErrorCode::out_of_memory, "a failed allocation is said to be: {}", error.message());
}

// A refusal has a reason. `wanted` pages of each group were asked for at once.
inline void Machine::expect_refused(const Error& error, KvKind kind, const KvLayout& layout, const Wanted& wanted) {
  if (kind == KvKind::contiguous) return expect_out_of_memory(error);
  if (struck_last_) {
    expect(error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::cache_full,
           "a failed allocation is said to be: {}", error.message());
    return;
  }
  ++counts_.refused_pages;
  expect(error.code() == ErrorCode::cache_full, "want of pages is said to be: {}", error.message());
  const KvFigures figures = pools_->figures();
  const std::uint64_t unheld = options_.budget - figures.held_bytes;
  // Either everything cached has been given up, or that would not have been enough.
  std::uint64_t elsewhere = unheld, missing = 0;
  bool at_hand = true;  // in free pages and whole slabs that the budget has room for
  for (const auto& pool : pools_->state()->pools) {
    std::uint64_t n = 0;
    for (std::size_t group = 0; group < wanted.size(); ++group) {
      n += layout.groups[group].page_bytes == pool->page_bytes() ? wanted[group] : 0;
    }
    const std::uint64_t have = pool->free() + pool->cached(), slabs = unheld / pool->slab_bytes();
    if (n > have) missing += (n - have) * pool->page_bytes();
    else elsewhere += (have - n) * pool->page_bytes();
    at_hand = at_hand && (n == 0 || pool->free() + slabs * (pool->slab_bytes() / pool->page_bytes()) >= n);
  }
  const bool one_pool = std::ranges::all_of(layout.groups, [&](const KvGroup& group) {
    return group.page_bytes == layout.groups[0].page_bytes;
  });
  expect(!one_pool || !at_hand, "pages were refused that can be had");
  expect(figures.cached_bytes == 0 || missing > elsewhere, "refused although {} bytes could be evicted",
         figures.cached_bytes);
}

inline KvLayout Machine::with_window(KvLayout layout, std::uint64_t window) {
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    if (layout.groups.size() == 1 || layout.groups[group].window != 0) layout.groups[group].window = window + 7 * group;
  }
  return layout;
}

inline KvLayout Machine::with_windows_of(KvLayout layout, const KvLayout& other) {
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    layout.groups[group].window = other.groups[group].window;
  }
  return layout;
}

inline std::optional<Twin> Machine::make(const KvLayout& layout, KvKind kind, std::uint64_t capacity, PassedPages passed,
                                         std::uint32_t salt) {
  const KvCacheOptions options{.capacity = capacity,
                               .passed = passed,
                               .prefix_identity = salt == 0 ? "" : fmt::format("this model and salt number {}", salt)};
  KvLayout to_move = layout;
  auto cache = call([&] {
    return kind == KvKind::paged ? KvCache::paged(std::move(to_move), options, *pools_)
                                 : KvCache::contiguous(std::move(to_move), options, *options_.memory);
  });
  if (!cache) {
    expect_out_of_memory(cache.error());
    return std::nullopt;
  }
  counts_.most_groups = std::max<std::uint64_t>(counts_.most_groups, layout.groups.size());
  for (std::size_t i = 0; i < layout.layers.size(); ++i) counts_.shared_places += layout.is_first_at_its_place(i) ? 0 : 1;
  return Twin{
      .cache = *std::move(cache), .layout = layout, .kind = kind, .capacity = capacity, .passed = passed, .salt = salt};
}

// The cache that a command means; one is made if there is none. nullptr: it could not be.
inline Twin* Machine::any(const Command& command) {
  if (caches_.empty()) create(command);
  if (caches_.empty()) return nullptr;
  Twin& twin = caches_[command.which % caches_.size()];
  return !twin.suspended || bring_back(twin) ? &twin : nullptr;
}

// Waits for what is written behind.
inline void Machine::drain() const {
  KvPools::State& state = *pools_->state();
  std::unique_lock lock(state.mutex);
  while (state.writing > 0) state.written.wait(lock);
}

inline void Machine::add(Twin&& twin) {
  if (caches_.size() == kMaxCaches) remove(command_.which % kMaxCaches);
  check_records(twin);
  caches_.push_back(std::move(twin));
}

inline void Machine::remove(std::size_t index) {
  const bool paged = caches_[index].kind == KvKind::paged && !caches_[index].suspended;
  if (index + 1 < caches_.size()) caches_[index] = std::move(caches_.back());
  caches_.pop_back();
  if (!paged) return;
  drain();
  check_settled();
}

// Pages [first, last) may be written: no other cache holds them and nobody can find them.
inline void Machine::expect_private(const Twin& twin, std::uint64_t first, std::uint64_t last) const {
  if (twin.kind == KvKind::contiguous) return;
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const detail::PagePool& pool = *pool_of(twin.layout.groups[group]);
    for (std::uint64_t i = std::max(first, twin.first_page(group)); i < last; ++i) {
      const detail::PageId id = id_of(pool, twin.pages(group)[i]);
      expect(pool.references(id) == 1, "page {} is to be written and has {} holders", i, pool.references(id));
      expect(pool.is_private(id), "page {} is to be written and can be found by its tokens", i);
    }
  }
}

// Calls fn, which makes pages [first, last) of the twin writable, and compares the page tables before and after.
template <class Fn>
Status Machine::make_writable(Twin& twin, std::uint64_t first, std::uint64_t last, std::uint64_t reserved, Fn&& fn) {
  const auto before = twin.all_pages();
  const Status status = call(fn);
  if (status) twin.reserved = std::max(twin.reserved, reserved);
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const auto after = twin.pages(group);
    for (std::uint64_t i = 0; i < before[group].size(); ++i) {
      if (before[group][i] == after[i]) continue;
      expect(status.has_value() && i >= first && i < last && twin.kind == KvKind::paged, "page {} has moved", i);
      ++copies_;
    }
  }
  if (status) expect_private(twin, first, last);
  check_records(twin);
  return status;
}

inline bool Machine::reserve(Twin& twin, std::uint64_t tokens) {
  const std::uint64_t first = twin.length() / twin.page_tokens(), last = twin.layout.pages(tokens);
  const Status status = make_writable(twin, first, last, tokens, [&] { return twin.cache.reserve(tokens); });
  expect(!status || tokens <= twin.capacity, "{} tokens were reserved of at most {}", tokens, twin.capacity);
  if (status) return true;
  if (tokens > twin.capacity) {
    expect(struck_last_ || status.error().code() == ErrorCode::cache_full, "a full cache is said to be: {}",
           status.error().message());
    ++counts_.refused_capacity;
  } else {
    expect_refused(status.error(), twin.kind, twin.layout, pages_to_acquire(twin, first, last));
  }
  return false;
}

// Of pages [first, last): those that are not there, and those that others hold.
inline Machine::Wanted Machine::pages_to_acquire(const Twin& twin, std::uint64_t first, std::uint64_t last) const {
  Wanted wanted(twin.groups(), 0);
  if (twin.kind == KvKind::contiguous) return wanted;
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const detail::PagePool& pool = *pool_of(twin.layout.groups[group]);
    for (std::uint64_t i = first; i < last; ++i) {
      wanted[group] += i >= twin.end_page() || pool.references(id_of(pool, twin.pages(group)[i])) > 1 ? 1 : 0;
    }
  }
  return wanted;
}

inline Machine::Wanted Machine::pages_to_move_to(const Twin& twin, std::uint64_t first, std::span<const std::uint64_t> again,
                                                 std::uint64_t last) const {
  Wanted wanted(twin.groups(), 0);
  if (twin.kind == KvKind::contiguous) return wanted;
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const detail::PagePool& pool = *pool_of(twin.layout.groups[group]);
    for (std::uint64_t i = first; i < last; ++i) {
      const std::byte* page = twin.pages(group)[i];
      wanted[group] += page == nullptr ? i >= again[group] : pool.references(id_of(pool, page)) > 1;
    }
  }
  return wanted;
}

// What a copy of it takes, with so many tokens.
inline Machine::Wanted Machine::pages_held(const Twin& twin, std::uint64_t tokens) {
  Wanted wanted;
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    wanted.push_back(twin.layout.pages(tokens) - std::min(twin.first_page(group), twin.layout.pages(tokens)));
  }
  return wanted;
}

// The twin has its new tokens already, and the cache their records.
inline void Machine::commit(Twin& twin, bool offer) {
  offer = offer && (twin.of_tokens || twin.edited);  // of an edited one the library has to keep them to itself
  call([&] {
    twin.cache.commit(twin.length(), offer ? std::span<const Token>(twin.tokens) : std::span<const Token>());
  });
  const std::vector<std::uint64_t> first = twin.first;
  twin.committed();
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    counts_.pages_passed += (twin.first[group] - first[group]) / twin.page_tokens();
  }
  if (offer && twin.can_share() && !twin.edited && twin.has_full_group() && twin.offers) {
    const auto embedding = static_cast<std::uint64_t>(std::ranges::find(twin.tokens, Token{-1}) - twin.tokens.begin());
    const std::uint64_t full = twin.length() / twin.page_tokens();
    const std::uint64_t offered = std::min(full, embedding / twin.page_tokens());
    if (!struck_) twin.offered = offered;
    twin.offers = !struck_ && offered == full;
  }
  check_records(twin);
}

}  // namespace tessera::tests
