// A cache and what it must hold: the reference of the walks. Instead of keys and values a position holds a stamp, 64
// bits that say who wrote it. Where the cache may share pages by their tokens, a stamp follows from the identity and
// all tokens up to it, as keys and values do; everywhere else no two writes have the same one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/extend/kv/layer_on_host.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "kv/codecs.hpp"

namespace tessera::tests {

using Stamp = std::uint64_t;

// splitmix64 over two words.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Twin {
  KvCache cache;
  KvLayout layout;
  KvKind kind = KvKind::paged;
  std::uint64_t capacity = 0;
  PassedPages passed = PassedPages::give_back;
  std::uint32_t salt = 0;  // 0: no identity

  std::vector<Token> tokens = {};   // [length]
  std::vector<Stamp> stamps = {};   // [length]: a map from position to what was written there
  std::vector<std::uint64_t> first = std::vector<std::uint64_t>(layout.groups.size(), 0);  // [group]: given back below
  std::uint64_t reserved = 0;       // tokens that there are pages for, at least length
  bool edited = false;
  bool of_tokens = true;            // the stamps follow from the tokens: only then may pages be offered
  bool offers = true;               // the next full pages will be found by others ...
  std::uint64_t offered = 0;        // ... and these can be: full pages from the beginning
  bool suspended = false;           // no pages: they are in the file

  [[nodiscard]] std::uint64_t length() const noexcept { return stamps.size(); }
  [[nodiscard]] std::uint64_t page_tokens() const noexcept { return layout.page_tokens; }
  [[nodiscard]] std::size_t groups() const noexcept { return first.size(); }
  // Pages that the cache holds of a group: [first_page, end_page).
  [[nodiscard]] std::uint64_t first_page(std::size_t group) const noexcept { return first[group] / page_tokens(); }
  [[nodiscard]] std::uint64_t end_page() const noexcept { return layout.pages(reserved); }
  [[nodiscard]] std::span<std::byte* const> pages(std::size_t group) const noexcept {
    return {cache.view().pages[group], end_page()};
  }
  [[nodiscard]] std::vector<std::vector<std::byte*>> all_pages() const {
    std::vector<std::vector<std::byte*>> all;
    for (std::size_t group = 0; group < groups(); ++group) all.emplace_back(pages(group).begin(), pages(group).end());
    return all;
  }
  [[nodiscard]] bool has_passed_tokens() const noexcept { return std::ranges::max(first) > 0; }
  [[nodiscard]] bool holds_whole_pages() const noexcept {
    return std::ranges::all_of(first, [&](std::uint64_t position) { return position % page_tokens() == 0; });
  }
  // What gives pages back; 0: nothing does.
  [[nodiscard]] std::uint64_t window(std::size_t group) const noexcept {
    return passed == PassedPages::keep ? 0 : layout.groups[group].window;
  }
  // Whether every position has a page in some group, whatever windows have passed.
  [[nodiscard]] bool has_full_group() const noexcept {
    return std::ranges::any_of(layout.groups, [](const KvGroup& group) { return group.window == 0; });
  }

  [[nodiscard]] bool can_share() const noexcept { return salt != 0 && kind == KvKind::paged; }

  // Of the position after `tokens`, if everything before it follows from the tokens.
  [[nodiscard]] Stamp stamp_of(Token token) const noexcept {
    return mix(stamps.empty() ? salt : stamps.back(), static_cast<std::uint64_t>(static_cast<std::int64_t>(token)));
  }
  // The first position that a row at `position` and later ones see in a group.
  [[nodiscard]] std::uint64_t first_seen_from(std::size_t group, std::uint64_t position) const noexcept {
    const std::uint64_t seen = window(group);
    return seen == 0 || position + 1 <= seen ? 0 : position + 1 - seen;
  }

  // The contents of another one.
  void take_over(const Twin& from) {
    tokens = from.tokens;
    stamps = from.stamps;
    first = from.first;
    reserved = length();
    of_tokens = from.of_tokens;
  }
  // The same in all but the cache.
  [[nodiscard]] Twin like(KvCache other) const {
    return {.cache = std::move(other), .layout = layout,       .kind = kind,     .capacity = capacity, .passed = passed,
            .salt = salt,              .tokens = tokens,       .stamps = stamps, .first = first,       .reserved = reserved,
            .edited = edited,          .of_tokens = of_tokens, .offers = offers, .offered = offered};
  }

  // Whether a group holds only what is behind `end` once tokens before it have been taken out.
  [[nodiscard]] bool keeps_tail_behind(std::size_t group, std::uint64_t end) const noexcept {
    return passed == PassedPages::give_back_edited && window(group) != 0 && length() >= end + window(group) + page_tokens();
  }

  // What the library promises of the state after each step, beside the records.
  void append(Token token, Stamp stamp) {
    tokens.push_back(token);
    stamps.push_back(stamp);
  }
  // After pages were found in the index: each group has what its window still sees, and perhaps a page more.
  void take_firsts() {
    for (std::size_t group = 0; group < groups(); ++group) {
      const std::uint64_t is = cache.first_of_group(group), needed = first_seen_from(group, length()) / page_tokens();
      if (is % page_tokens() != 0 || is > needed * page_tokens() || is + page_tokens() < needed * page_tokens()) {
        throw std::logic_error(fmt::format("group {} holds {} and later of {} found tokens", group, is, length()));
      }
      first[group] = is;
    }
  }
  void committed() noexcept {
    reserved = length();
    if (edited && passed != PassedPages::give_back_edited) return;
    for (std::size_t group = 0; group < groups(); ++group) {
      const std::uint64_t behind = first_seen_from(group, length()) / page_tokens();  // whole pages, of which one is kept
      if (behind > 1) first[group] = std::max(first[group], (behind - 1) * page_tokens());
    }
  }
  void truncated(std::uint64_t to) {
    if (to >= length()) return;
    for (std::size_t group = 0; group < groups(); ++group) {
      if (first_seen_from(group, to) < first[group]) to = 0;
    }
    tokens.resize(to);
    stamps.resize(to);
    reserved = to;
    offered = std::min(offered, to / page_tokens());
    if (to > 0) return;
    std::ranges::fill(first, 0);
    edited = false;
    of_tokens = offers = true;
  }
};

// Records of positions from `first` on: eight bytes of a record are a mix of the stamp and which part it is. A part's
// number follows from its place, so that layers that share one have the same.
class Records {
 public:
  using Firsts = std::span<const std::uint64_t>;  // [group]

  // Stamps of positions from `first` on, in all groups.
  void write(const KvCache& cache, std::uint64_t first, std::span<const Stamp> stamps) {
    const std::vector<std::uint64_t> firsts(cache.layout().groups.size(), first);
    change(cache, firsts, first + stamps.size(),
           [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t) {
             put(view, of, part, first, stamps);
           });
  }
  // Stamps of one part from `first` on.
  void put(const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t first, std::span<const Stamp> stamps) {
    fill(*view.layout, of, part, stamps);
    kv::write_records(view, of, first, first + stamps.size(), expected_.data());
  }
  // The first position that does not hold its stamp in a layer that should, or the end. `stamps`: of all positions.
  [[nodiscard]] std::uint64_t first_wrong(const KvCache& cache, Firsts firsts, std::span<const Stamp> stamps) {
    std::uint64_t wrong = stamps.size();
    if (stamps.empty()) return wrong;
    look_at(cache, firsts, wrong, [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t first) {
      fill(*view.layout, of, part, stamps.subspan(first));
      found_.resize(expected_.size());
      kv::read_records(view, of, first, stamps.size(), found_.data());
      if (std::ranges::equal(found_, expected_)) return;
      const std::uint64_t bytes = kv::record_bytes(*view.layout, of);
      for (std::uint64_t i = 0; i < stamps.size() - first; ++i) {
        if (std::memcmp(&found_[i * bytes], &expected_[i * bytes], bytes) != 0) wrong = std::min(wrong, first + i);
      }
    });
    return wrong;
  }

  // Calls fn(view, head part, its number, first) of every layer, with positions [first, last) of it at hand.
  template <class Fn>
  static void look_at(const KvCache& cache, Firsts firsts, std::uint64_t last, Fn&& fn) {
    for (std::size_t layer = 0; layer < cache.layout().layers.size(); ++layer) {
      const std::uint64_t first = firsts[cache.layout().layers[layer].group];
      for_each_part(must_have(kv::LayerOnHost::read(cache, layer, first, last)), cache.layout(), layer, first, fn);
    }
  }
  // The same for an fn that writes them, of each place once.
  template <class Fn>
  static void change(const KvCache& cache, Firsts firsts, std::uint64_t last, Fn&& fn) {
    for (std::size_t layer = 0; layer < cache.layout().layers.size(); ++layer) {
      if (!cache.layout().is_first_at_its_place(layer)) continue;
      const std::uint64_t first = firsts[cache.layout().layers[layer].group];
      const kv::LayerOnHost on_host = must_have(kv::LayerOnHost::read(cache, layer, first, last));
      for_each_part(on_host, cache.layout(), layer, first, fn);
      if (!on_host.write_back()) throw std::runtime_error("a cache could not be written to");
    }
  }
  template <class Fn>
  static void for_each_part(const KvView& view, Fn&& fn) {
    for (std::size_t layer = 0; layer < view.layout->layers.size(); ++layer) {
      for (std::size_t head = 0; head < view.layout->layer(layer).shape.kv_heads; ++head) {
        for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
          fn(kv::HeadPart{.layer = layer, .part = part, .head = head}, number_of(*view.layout, layer, head, part));
        }
      }
    }
  }

 private:
  static kv::LayerOnHost must_have(Result<kv::LayerOnHost> on_host) {
    if (!on_host) throw std::runtime_error(on_host.error().text());
    return *std::move(on_host);
  }
  static std::uint64_t number_of(const KvLayout& layout, std::size_t layer, std::size_t head, kv::KeyOrValue part) {
    const KvPlace at = layout.layers[layer];
    return ((at.group * 16u + at.layer) * 16u + head) * 2 + static_cast<unsigned>(part);
  }
  template <class Fn>
  static void for_each_part(const kv::LayerOnHost& on_host, const KvLayout& layout, std::size_t layer, std::uint64_t first,
                            Fn&& fn) {
    for (std::size_t head = 0; head < layout.layer(layer).shape.kv_heads; ++head) {
      for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
        fn(on_host.view(), on_host.head(part, head), number_of(layout, layer, head, part), first);
      }
    }
  }
  void fill(const KvLayout& layout, const kv::HeadPart& of, std::uint64_t part, std::span<const Stamp> stamps) {
    const std::uint64_t bytes = kv::record_bytes(layout, of);
    expected_.resize(bytes * stamps.size());
    std::byte* to = expected_.data();
    for (const Stamp stamp : stamps) {
      for (std::uint64_t at = 0; at < bytes; at += sizeof(Stamp)) {
        const Stamp word = mix(stamp, part << 32 | at);
        std::memcpy(to + at, &word, std::min<std::uint64_t>(sizeof word, bytes - at));
      }
      to += bytes;
    }
  }

  std::vector<std::byte> expected_, found_;
};

}  // namespace tessera::tests
