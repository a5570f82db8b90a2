// What a walk does: each operation on the library and on the twin.
#pragma once

#include <map>

#include "parts.hpp"

#include "kv/codecs.hpp"

namespace tessera::tests {

inline const Machine::Operation Machine::kOperations[] = {
    {"append", 36, &Machine::append},
    {"create", 4, &Machine::create},
    {"window", 4, &Machine::window},
    {"adopt", 8, &Machine::adopt},
    {"fork", 10, &Machine::fork},
    {"truncate", 8, &Machine::truncate},
    {"edit", 4, &Machine::edit},
    {"take out", 5, &Machine::take_out},
    {"cancel", 4, &Machine::cancel},
    {"clone", 4, &Machine::clone},
    {"convert", 5, &Machine::convert},
    {"save and restore", 4, &Machine::save_restore},
    {"drop", 3, &Machine::drop},
    {"evict", 1, &Machine::evict},
    {"suspend", 4, &Machine::suspend},
    {"resume", 2, &Machine::resume},
    {"fail an allocation", 5, &Machine::fail_allocation},
};

inline std::span<const Machine::Operation> Machine::operations() { return kOperations; }

inline void Machine::create(const Command& c) {
  constexpr std::uint32_t kSalts[] = {1, 1, 2, 0};
  constexpr PassedPages kPassed[] = {PassedPages::give_back, PassedPages::give_back, PassedPages::give_back_edited, PassedPages::keep};
  auto twin = make(layouts_[c.which % layouts_.size()], c.a % 5 == 4 ? KvKind::contiguous : KvKind::paged, 24u + c.b,
                   kPassed[c.a / 20 % 4], kSalts[c.a / 5 % 4]);
  if (twin) add(*std::move(twin));
}

inline void Machine::window(const Command& c) {
  const std::uint64_t window = 1u + c.a % (c.b % 5 == 0 ? 3 : 60);
  auto twin = make(with_window(layouts_[c.which % layouts_.size()], window),
                   c.a % 4 == 3 ? KvKind::contiguous : KvKind::paged, 100u + c.b,
                   c.b / 5 % 2 == 0 ? PassedPages::give_back : PassedPages::give_back_edited, c.b % 3);
  if (twin) add(*std::move(twin));
}

inline void Machine::append(const Command& c) {
  enum { unoffered = 0, embedding = 1, beyond_capacity = 2, too_many = 3, first_to_adopt = 8 };  // and else: plainly
  Twin* twin = any(c);
  if (twin == nullptr) return;
  const Token text = 1 + c.b % 3;
  const int how = c.b / 3 % 16;
  std::uint64_t n = 1u + c.a % 64;
  if (how != beyond_capacity) n = std::clamp<std::uint64_t>(twin->capacity - twin->length(), 1, n);
  if (how >= first_to_adopt) n -= adopt_into(*twin, std::vector<Token>(n - 1, text));
  const std::uint64_t extra = how == too_many ? c.a / 4 : 0;
  const std::uint64_t begin = twin->length();
  if (!reserve(*twin, begin + n + extra)) return;
  for (std::uint64_t i = 0; i < n; ++i) {
    const Token token = how == embedding && i == (c.a % 2 == 0 ? 0 : n / 2) ? -1 : text;
    const bool follows = twin->salt != 0 && twin->of_tokens && token >= 0;
    twin->append(token, follows ? twin->stamp_of(token) : unique_stamp());
  }
  records_.write(twin->cache, begin, std::span(twin->stamps).subspan(begin));
  commit(*twin, how != unoffered);
}

// A forward pass that did not come to its end.
inline void Machine::cancel(const Command& c) {
  Twin* twin = any(c);
  std::vector<Stamp> unfinished(1 + c.a % 100);
  if (twin == nullptr || !reserve(*twin, twin->length() + unfinished.size())) return;
  for (Stamp& stamp : unfinished) stamp = unique_stamp();
  if (c.b % 2 == 0) records_.write(twin->cache, twin->length(), unfinished);
  if (c.b % 4 < 2) commit(*twin, true);
}

// A new cache with tokens that another one has: all of them, one changed, or under another identity.
inline void Machine::adopt(const Command& c) {
  const Twin* source = any(c);
  if (source == nullptr) return;
  std::vector<Token> tokens(source->tokens.begin(), std::ranges::find(source->tokens, Token{-1}));
  tokens.resize(std::min<std::size_t>(tokens.size(), 1u + c.a));
  const int how = c.b % 8;
  if (how == 1 && !tokens.empty()) tokens[c.b / 8 * tokens.size() / 32] += 1;
  const std::uint32_t salt = how == 2 ? 3 - source->salt : source->salt;
  auto twin = make(source->layout, KvKind::paged, source->capacity, how == 3 ? PassedPages::keep : PassedPages::give_back, salt);
  if (!twin) return;
  adopt_into(*twin, tokens);
  add(*std::move(twin));
}

inline std::uint64_t Machine::adopt_into(Twin& twin, std::span<const Token> tokens) {
  const std::uint64_t size = twin.page_tokens(), begin = twin.length();
  const bool possible = twin.can_share() && !twin.edited && twin.of_tokens && begin % size == 0;
  // At least what another cache holds and has offered.
  std::uint64_t at_least = 0;
  if (possible && twin.reserved == begin && (begin == 0 || twin.offered * size == begin)) {
    std::vector<Token> all = twin.tokens;
    all.insert(all.end(), tokens.begin(), tokens.end());
    all.resize(std::min<std::size_t>(all.size(), twin.capacity));
    for (const Twin& other : caches_) {
      if (other.salt != twin.salt || other.layout != twin.layout || other.suspended) continue;
      const auto offered = std::span(other.tokens).first(other.offered * size);
      const auto differ = static_cast<std::uint64_t>(std::ranges::mismatch(offered, all).in1 - offered.begin());
      const std::uint64_t common = std::max(differ / size * size, begin);
      // Of every group what its window sees behind it; of a sequence that has tokens, all that follows.
      bool has_all = true;
      for (std::size_t group = 0; group < twin.groups(); ++group) {
        const std::uint64_t needed = begin > 0 ? begin : twin.first_seen_from(group, common) / size * size;
        has_all = has_all && other.first[group] <= needed;
      }
      if (has_all) at_least = std::max(at_least, common - begin);
    }
  }
  const std::uint64_t found = call([&] { return twin.cache.adopt(tokens); });
  expect(found % size == 0 && found <= tokens.size() && begin + found <= twin.capacity, "{} of {} tokens were found",
         found, tokens.size());
  expect(possible || found == 0, "{} tokens were found for a cache that can share none", found);
  expect(struck_last_ || found >= at_least, "{} tokens were found and {} are offered", found, at_least);
  if (found == 0) return 0;
  ++hits_;
  tokens_saved_ += found;
  for (const Token token : tokens.first(found)) twin.append(token, twin.stamp_of(token));
  twin.reserved = twin.length();
  twin.offers = true;
  if (twin.has_full_group()) twin.offered = twin.length() / size;
  if (begin == 0) twin.take_firsts();
  check_records(twin);
  return found;
}

inline void Machine::fork(const Command& c) {
  const Twin* source = any(c);
  if (source == nullptr) return;
  auto cache = call([&] { return source->cache.fork(); });
  if (source->kind == KvKind::contiguous) {
    expect(!cache && (struck_last_ || cache.error().code() == ErrorCode::invalid_state),
           "a contiguous cache was forked");
    ++counts_.refused_state;
    return;
  }
  if (!cache) return expect_out_of_memory(cache.error());
  Twin twin = source->like(*std::move(cache));
  expect(twin.all_pages() == source->all_pages(), "a fork has pages of its own");
  add(std::move(twin));
}

inline void Machine::clone(const Command& c) {
  const Twin* source = any(c);
  if (source == nullptr) return;
  auto cache = call([&] { return source->cache.clone(); });
  if (!cache) return expect_refused(cache.error(), source->kind, source->layout, pages_held(*source, source->length()));
  Twin twin = source->like(*std::move(cache));
  twin.reserved = twin.length();
  twin.offers = twin.length() == 0;
  twin.offered = 0;
  expect_private(twin, 0, twin.end_page());
  add(std::move(twin));
}

inline void Machine::convert(const Command& c) {
  const Twin* source = any(c);
  if (source == nullptr) return;
  const KvLayout layout = with_windows_of(layouts_[c.a % layouts_.size()], source->layout);
  auto twin = make(layout, c.b % 3 == 2 ? KvKind::contiguous : KvKind::paged,
                   c.b % 8 == 7 ? 24u + c.b : source->capacity, source->passed, source->salt);
  if (!twin) return;
  const Status status = call([&] { return source->cache.convert_to(twin->cache); });
  if (status) {
    const bool decoded = !has_same_types(layout, source->layout) && source->length() > 0;
    twin->take_over(*source);
    twin->edited = source->edited || decoded;
    twin->offers = !twin->edited && twin->holds_whole_pages();
    expect_private(*twin, 0, twin->end_page());
    if (decoded) {
      // What a stamp becomes in another type is not our subject (test_kv_codecs.cpp).
      twin->of_tokens = false;
      for (Stamp& stamp : twin->stamps) stamp = unique_stamp();
      // Of each group what it holds.
      Records::change(twin->cache, twin->first, twin->length(),
                      [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t from) {
                        records_.put(view, of, part, from, std::span(twin->stamps).subspan(from));
                      });
    }
  } else if (twin->capacity < source->length()) {
    expect(struck_last_ || status.error().code() == ErrorCode::cache_full, "a cache too small: {}",
           status.error().message());
    ++counts_.refused_capacity;
  } else {
    Wanted wanted;
    for (const std::uint64_t first : source->first) {
      wanted.push_back(layout.pages(source->length()) - std::min(first / layout.page_tokens, layout.pages(source->length())));
    }
    expect_refused(status.error(), twin->kind, layout, wanted);
  }
  add(*std::move(twin));
}

// All records of a cache to bytes and into a fresh cache, as a file would do it.
inline void Machine::save_restore(const Command& c) {
  const Twin* source = any(c);
  if (source == nullptr) return;
  const KvLayout other = with_windows_of(layouts_[c.a % layouts_.size()], source->layout);
  const KvLayout& layout = has_same_types(other, source->layout) ? other : source->layout;
  auto twin =
      make(layout, c.b % 3 == 2 ? KvKind::contiguous : KvKind::paged, source->capacity, source->passed, source->salt);
  if (!twin) return;
  std::map<std::uint64_t, std::vector<std::byte>> saved;  // by the part's number: layers that share a place are one
  const std::vector<std::uint64_t> firsts = source->first;
  const std::uint64_t length = source->length();
  Records::look_at(source->cache, firsts, length,
                   [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t first) {
                     saved[part].resize((length - first) * kv::record_bytes(*view.layout, of));
                     kv::read_records(view, of, first, length, saved[part].data());
                   });
  if (length > 0 && reserve(*twin, length)) {
    const std::uint64_t reserved = twin->reserved;
    twin->take_over(*source);
    twin->reserved = reserved;
    std::ranges::fill(twin->first, 0);
    // What no window has passed yet in this one is anything; the rest are the source's records.
    const std::uint64_t passed = std::ranges::max(firsts);
    if (passed > 0) twin->of_tokens = false;
    for (std::uint64_t i = 0; i < passed; ++i) twin->stamps[i] = unique_stamp();
    records_.write(twin->cache, 0, std::span(twin->stamps).first(passed));
    const std::vector<std::uint64_t> from(firsts.size(), passed);
    Records::change(twin->cache, from, length,
                    [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t) {
                      const auto& bytes = saved[part];
                      const std::uint64_t held = (length - passed) * kv::record_bytes(*view.layout, of);
                      kv::write_records(view, of, passed, length, bytes.data() + (bytes.size() - held));
                    });
    check_records(*twin);
    commit(*twin, true);
  }
  add(*std::move(twin));
}

inline void Machine::truncate(const Command& c) {
  Twin* twin = any(c);
  if (twin == nullptr) return;
  const std::uint64_t length = twin->length();
  std::uint64_t to = (c.a * 256u + c.b) % (length + 3);
  if (c.a % 8 == 7) to = 0;
  if (c.a % 8 >= 5) to = to / twin->page_tokens() * twin->page_tokens();
  call([&] { twin->cache.truncate(to); });
  twin->truncated(to);
  counts_.window_resets += to > 0 && length > 0 && twin->length() == 0 ? 1 : 0;
  check_records(*twin);
}

inline void Machine::edit(const Command& c) {
  Twin* twin = any(c);
  if (twin == nullptr) return;
  const std::uint64_t first = (c.a * 256u + c.b) % (twin->length() + 2), size = twin->page_tokens();
  const std::uint64_t end_page = twin->layout.pages(twin->length());
  const Status status = make_writable(*twin, first < twin->length() ? first / size : end_page, end_page, twin->reserved,
                                      [&] { return twin->cache.edit(first); });
  if (twin->has_passed_tokens()) {
    expect(!status && (struck_last_ || status.error().code() == ErrorCode::invalid_state), "edited behind a window");
    ++counts_.refused_state;
    return;
  }
  if (!status) {
    return expect_refused(status.error(), twin->kind, twin->layout, pages_to_acquire(*twin, first / size, end_page));
  }
  twin->edited = true;
  twin->of_tokens = twin->offers = false;
  twin->offered = std::min(twin->offered, first / size);
  if (first >= twin->length()) return;
  const auto changed =
      std::span(twin->stamps).subspan(first, std::min<std::uint64_t>(1u + c.b % 50, twin->length() - first));
  for (Stamp& stamp : changed) stamp = unique_stamp();
  records_.write(twin->cache, first, changed);
}

// One run of tokens or two. The walk writes what is moved: the records of tokens that stay.
inline void Machine::take_out(const Command& c) {
  Twin* twin = any(c);
  if (twin == nullptr || twin->length() < 4) return;
  const std::uint64_t length = twin->length(), size = twin->page_tokens();
  const std::uint64_t first = (c.b % 2 == 0 ? c.a % 8u : c.a * 3u) % (length - 1), last = std::min<std::uint64_t>(first + 1 + c.b % 40, length - 1);
  const std::uint64_t second = last + 1 + c.b / 16, second_last = std::min<std::uint64_t>(second + 1 + c.a % 20, length - 1);
  const bool two = c.a % 2 == 1 && second < second_last;
  const std::uint64_t end = two ? second_last : last, tokens = last - first + (two ? second_last - second : 0);
  const std::uint64_t pages = twin->layout.pages(length - tokens);
  // Of each group where its records are written anew, and which pages it needs for them.
  std::vector<std::uint64_t> from(twin->groups(), 0), written(twin->groups(), first), again(twin->groups(), pages);
  bool possible = true;
  for (std::size_t group = 0; group < twin->groups(); ++group) {
    if (twin->keeps_tail_behind(group, end)) {
      from[group] = std::max(twin->first[group], end);
      written[group] = from[group] - tokens;
      again[group] = written[group] / size;
      ++counts_.tails_moved;
    } else {
      possible = possible && twin->first[group] == 0;
    }
  }
  const auto before = twin->all_pages();
  const auto removal = call([&] { return twin->cache.begin_removal(first, end, tokens); });
  if (!possible) {
    expect(!removal && (struck_last_ || removal.error().code() == ErrorCode::invalid_state), "edited behind a window");
    ++counts_.refused_state;
    return;
  }
  for (std::size_t group = 0; group < twin->groups(); ++group) {
    const auto after = twin->pages(group);
    for (std::uint64_t i = 0; i < after.size(); ++i) {
      if (before[group][i] == after[i]) continue;
      expect(removal.has_value() && i < pages && i >= (before[group][i] == nullptr ? again[group] : first / size), "page {} has moved", i);
      copies_ += before[group][i] == nullptr ? 0 : 1;
    }
  }
  if (!removal) return expect_refused(removal.error(), twin->kind, twin->layout, pages_to_move_to(*twin, first / size, again, pages));
  expect(removal->tokens == tokens && removal->from == from, "what is to be moved is not what the windows need");
  const auto take = [&](auto& list) {
    const auto at = [&](std::uint64_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
    if (two) list.erase(at(second), at(second_last));
    list.erase(at(first), at(last));
  };
  take(twin->tokens), take(twin->stamps);
  Records::change(twin->cache, written, twin->length(), [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t at) {
    records_.put(view, of, part, at, std::span(twin->stamps).subspan(at));
  });
  call([&] { twin->cache.end_removal(*removal); });
  for (std::size_t group = 0; group < twin->groups(); ++group) {
    if (from[group] != 0) twin->first[group] = written[group];
  }
  twin->edited = true;
  twin->committed();
  twin->of_tokens = twin->offers = false;
  twin->offered = std::min(twin->offered, first / size);
  expect_private(*twin, first / size, twin->end_page());
  check_records(*twin);
}

inline void Machine::drop(const Command& c) {
  if (!caches_.empty()) remove(c.which % caches_.size());
}

inline void Machine::evict(const Command&) {
  pools_->trim();
  const KvFigures figures = pools_->figures();
  std::uint64_t most = 0;  // if every slab has a page that is used
  for (const auto& pool : pools_->state()->pools) most += pool->used() * pool->slab_bytes();
  expect(figures.cached_bytes == 0, "{} bytes are cached after trim()", figures.cached_bytes);
  expect(figures.held_bytes <= most, "a slab of free pages is held after trim()");
}

// Without an allocation that fails: a page that cannot be handed over stays in memory, held by nobody that we know.
inline void Machine::suspend(const Command& c) {
  Twin* twin = any(c);
  if (twin == nullptr) return;
  const Status status = twin->cache.suspend();
  if (!status) {
    const bool possible = twin->kind == KvKind::paged && !options_.file.empty();
    expect(status.error().code() == (possible ? ErrorCode::cache_full : ErrorCode::invalid_state), "not suspended: {}",
           status.error().message());
    ++(possible ? counts_.refused_pages : counts_.refused_state);
    return;
  }
  twin->suspended = true;
  if (c.a % 4 == 1) {  // while it is being written
    const std::uint64_t to = c.b % (twin->length() + 3);
    call([&] { twin->cache.truncate(to); });
    twin->truncated(to);
  }
  if (c.a % 4 == 2) (void)bring_back(*twin);  // without waiting for it
  if (c.a % 8 == 4) {
    if (call([&] { return twin->cache.prefetch(); })) expect(twin->cache.suspended(), "prefetching has resumed it");
    // What is prefetched is held, until it is resumed or suspended again.
    if (!bring_back(*twin)) expect(twin->cache.suspend().has_value(), "not suspended again");
  }
}

inline void Machine::resume(const Command& c) {
  for (Twin& twin : caches_) {
    if (!twin.suspended) continue;
    if (!bring_back(twin) || c.a % 2 == 0) return;
  }
}

inline bool Machine::bring_back(Twin& twin) {
  const Status status = call([&] { return twin.cache.resume(); });
  expect(twin.cache.suspended() != status.has_value(), "resumed by half");
  if (!status) {
    expect_refused(status.error(), twin.kind, twin.layout, pages_held(twin, twin.reserved));
    return false;
  }
  twin.suspended = false;
  twin.offered = 0;
  twin.offers = !twin.edited && twin.holds_whole_pages();
  check_records(twin);
  return true;
}

// In the next operation.
inline void Machine::fail_allocation(const Command& c) {
  armed_ = true;
  allocations_left_ = c.a % 16;
  failure_ = c.b % 2 == 0 ? counted::Failure::once : counted::Failure::from_then_on;
}

}  // namespace tessera::tests
