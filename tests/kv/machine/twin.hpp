// A cache and what it must hold: the reference of the walks. Instead of keys and values a position holds a stamp, 64
// bits that say who wrote it. Where the cache may share pages by their tokens, a stamp follows from the identity and
// all tokens up to it, as keys and values do; everywhere else no two writes have the same one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/layer_on_host.hpp>

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
  std::uint64_t window = 0;
  std::uint32_t salt = 0;  // 0: no identity

  std::vector<Token> tokens = {};   // [length]
  std::vector<Stamp> stamps = {};   // [length]: a map from position to what was written there
  std::uint64_t first = 0;          // what is below has been given back
  std::uint64_t reserved = 0;       // tokens that there are pages for, at least length
  bool edited = false;
  bool of_tokens = true;            // the stamps follow from the tokens: only then may pages be offered
  bool offers = true;               // the next full pages will be found by others ...
  std::uint64_t offered = 0;        // ... and these can be: full pages from the beginning
  bool suspended = false;           // no pages: they are in the file

  [[nodiscard]] std::uint64_t length() const noexcept { return stamps.size(); }
  [[nodiscard]] std::uint64_t page_tokens() const noexcept { return layout.page_tokens; }
  // Pages that the cache holds: [first_page, end_page).
  [[nodiscard]] std::uint64_t first_page() const noexcept { return first / page_tokens(); }
  [[nodiscard]] std::uint64_t end_page() const noexcept { return layout.pages(reserved); }
  [[nodiscard]] std::span<std::byte* const> pages() const noexcept { return {cache.view().pages, end_page()}; }

  [[nodiscard]] bool can_share() const noexcept { return salt != 0 && kind == KvKind::paged; }

  // Of the position after `tokens`, if everything before it follows from the tokens.
  [[nodiscard]] Stamp stamp_of(Token token) const noexcept {
    return mix(stamps.empty() ? salt : stamps.back(), static_cast<std::uint64_t>(static_cast<std::int64_t>(token)));
  }
  // The first position that a row at `position` and later ones see.
  [[nodiscard]] std::uint64_t first_seen_from(std::uint64_t position) const noexcept {
    return window == 0 || position + 1 <= window ? 0 : position + 1 - window;
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
    return {std::move(other), layout, kind,     capacity, window,    salt,   tokens,
            stamps,           first,  reserved, edited,   of_tokens, offers, offered};
  }

  // What the library promises of the state after each step, beside the records.
  void append(Token token, Stamp stamp) {
    tokens.push_back(token);
    stamps.push_back(stamp);
  }
  void committed() noexcept {
    reserved = length();
    if (window == 0 || edited) return;
    const std::uint64_t passed = first_seen_from(length()) / page_tokens();  // whole pages, of which one is kept
    if (passed > 1) first = std::max(first, (passed - 1) * page_tokens());
  }
  void truncated(std::uint64_t to) {
    if (to >= length()) return;
    if (first_seen_from(to) < first) to = 0;
    tokens.resize(to);
    stamps.resize(to);
    reserved = to;
    offered = std::min(offered, to / page_tokens());
    if (to > 0) return;
    first = 0;
    edited = false;
    of_tokens = offers = true;
  }
};

// Records of positions from `first` on: eight bytes of a record are a mix of the stamp and which part it is.
class Records {
 public:
  void write(const KvCache& cache, std::uint64_t first, std::span<const Stamp> stamps) {
    change(cache, first, first + stamps.size(), [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part) {
      fill(*view.layout, of, part, stamps);
      kv::write_records(view, of, first, first + stamps.size(), expected_.data());
    });
  }
  // The first position that does not hold its stamp, or the end.
  [[nodiscard]] std::uint64_t first_wrong(const KvCache& cache, std::uint64_t first, std::span<const Stamp> stamps) {
    std::uint64_t wrong = first + stamps.size();
    if (stamps.empty()) return wrong;
    look_at(cache, first, wrong, [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part) {
      fill(*view.layout, of, part, stamps);
      found_.resize(expected_.size());
      kv::read_records(view, of, first, first + stamps.size(), found_.data());
      if (std::memcmp(found_.data(), expected_.data(), expected_.size()) == 0) return;
      const std::uint64_t bytes = kv::record_bytes(*view.layout, of);
      for (std::uint64_t i = 0; i < stamps.size(); ++i) {
        if (std::memcmp(&found_[i * bytes], &expected_[i * bytes], bytes) != 0) wrong = std::min(wrong, first + i);
      }
    });
    return wrong;
  }

  // Calls fn(view, head part, its number) with positions [first, last) of the cache at hand.
  template <class Fn>
  static void look_at(const KvCache& cache, std::uint64_t first, std::uint64_t last, Fn&& fn) {
    std::uint64_t number = 0;
    for (std::size_t layer = 0; layer < cache.layout().layers.size(); ++layer) {
      number = for_each_part(must_have(kv::LayerOnHost::read(cache, layer, first, last)), cache, layer, number, fn);
    }
  }
  // The same for an fn that writes them.
  template <class Fn>
  static void change(const KvCache& cache, std::uint64_t first, std::uint64_t last, Fn&& fn) {
    std::uint64_t number = 0;
    for (std::size_t layer = 0; layer < cache.layout().layers.size(); ++layer) {
      const kv::LayerOnHost on_host = must_have(kv::LayerOnHost::read(cache, layer, first, last));
      number = for_each_part(on_host, cache, layer, number, fn);
      if (!on_host.write_back()) throw std::runtime_error("a cache could not be written to");
    }
  }
  template <class Fn>
  static void for_each_part(const KvView& view, Fn&& fn) {
    std::uint64_t number = 0;
    for (std::size_t layer = 0; layer < view.layout->layers.size(); ++layer) {
      for (std::size_t head = 0; head < view.layout->layers[layer].shape.kv_heads; ++head) {
        fn(kv::HeadPart{.layer = layer, .part = kv::Part::key, .head = head}, number++);
        fn(kv::HeadPart{.layer = layer, .part = kv::Part::value, .head = head}, number++);
      }
    }
  }

 private:
  static kv::LayerOnHost must_have(Result<kv::LayerOnHost> on_host) {
    if (!on_host) throw std::runtime_error(on_host.error().text());
    return *std::move(on_host);
  }
  template <class Fn>
  static std::uint64_t for_each_part(const kv::LayerOnHost& on_host, const KvCache& cache, std::size_t layer,
                                     std::uint64_t number, Fn&& fn) {
    for (std::size_t head = 0; head < cache.layout().layers[layer].shape.kv_heads; ++head) {
      for (const kv::Part part : {kv::Part::key, kv::Part::value}) fn(on_host.view(), on_host.head(part, head), number++);
    }
    return number;
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
