#include "text/nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

constexpr int kLongestDecomposition = 4;  // the largest number of code points that one character becomes (U+1F82 and others)
constexpr int kClassShift = 21;           // code points take 21 bits; the combining class is stored above them
constexpr std::int32_t kPointMask = (1 << kClassShift) - 1;
constexpr unsigned char kFirstJoining = 0xCC;  // first byte of U+0300 in UTF-8; every character before it is normal and joins nothing

constexpr std::size_t kLargeSegment = std::size_t{1} << 16;  // in bytes; the memory of a larger segment is freed after the segment

// Returns the code point at offset `at` of valid UTF-8, and moves `at` to the next character.
std::int32_t next_point(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  const unsigned size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned point = size == 1 ? lead : lead & (0x7Fu >> size);
  for (unsigned i = 1; i < size; ++i) point = point << 6 | (byte(i) & 0x3Fu);
  at += size;
  return static_cast<std::int32_t>(point);
}

bool is_mark(const utf8proc_property_t& property) noexcept {
  return property.combining_class != 0 || property.category == UTF8PROC_CATEGORY_MN ||
         property.category == UTF8PROC_CATEGORY_MC || property.category == UTF8PROC_CATEGORY_ME;
}

// Returns whether the letter can be composed with the letter before it. These are vowels and final consonants of Hangul and, since
// Unicode 16, vowels of Kirat Rai. (A test searches the installed version of utf8proc for others.) Exception: U+11A7 lies between these
// letters, but composes with nothing. For U+11A7 the function returns false, so that it begins a segment: utf8proc 2.8 takes it for "no
// final consonant", and would drop it.
bool is_joining_letter(std::int32_t c) noexcept {
  return (c >= 0x1160 && c <= 0x11FF && c != 0x11A7) || (c >= 0x16D40 && c <= 0x16D7F);
}

using Decomposition = std::array<std::int32_t, kLongestDecomposition>;

int decompose_point(std::int32_t c, Decomposition& points) noexcept {
  const auto count =
      utf8proc_decompose_char(c, points.data(), kLongestDecomposition, UTF8PROC_DECOMPOSE, nullptr);
  return static_cast<int>(count);
}

std::size_t compose_points(std::int32_t* points, std::size_t count) noexcept {
  constexpr auto how = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return static_cast<std::size_t>(utf8proc_normalize_utf32(points, static_cast<utf8proc_ssize_t>(count), how));
}

}  // namespace

Joining joining_of(std::int32_t c) noexcept {
  const bool ideograph = c >= 0x3400 && c <= 0x9FFF, hangul = c >= 0xAC00 && c <= 0xD7A3;  // avoids the look-up for most texts
  if (c < 0x300 || ideograph || hangul) return Joining::normal;
  const auto joins = [](std::int32_t point) {
    return is_joining_letter(point) || is_mark(*utf8proc_get_property(point));
  };
  if (joins(c)) return Joining::joins;
  Decomposition points{};
  const int count = decompose_point(c, points);
  if (count == 1 && points[0] == c) return Joining::normal;
  if (joins(points[0])) return Joining::joins;
  const bool back = compose_points(points.data(), static_cast<std::size_t>(count)) == 1 && points[0] == c;
  return back ? Joining::normal : Joining::changes;
}

// Normalises the text segment by segment. A segment begins with a character that never joins the character before it, so each segment can
// be normalised without its neighbours. Segments whose characters are all in normal form already are not processed.
std::string_view Nfc::normalize(std::string_view text) {
  normal_.clear();
  bool differs = false, to_do = false;
  std::size_t begin = 0, copied = 0;  // beginning of the segment; number of bytes of the text that are in normal_ already
  const auto end_segment = [&](std::size_t end) {
    if (!to_do) return;
    to_do = false;
    const std::string_view segment = text.substr(begin, end - begin);
    decompose(segment);
    order_marks();
    compose();
    if (composed_ == segment) return;
    if (!differs) normal_.reserve(text.size());
    differs = true;
    normal_.append(text.substr(copied, begin - copied)).append(composed_);
    copied = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (static_cast<unsigned char>(text[at]) < kFirstJoining) {
      at += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
      end_segment(here);
      begin = here;
      continue;
    }
    const Joining joining = joining_of(next_point(text, at));
    if (joining != Joining::joins) {
      end_segment(here);
      begin = here;
    }
    to_do |= joining != Joining::normal;
  }
  end_segment(text.size());
  if (points_.capacity() > kLargeSegment) {
    std::vector<std::int32_t>().swap(points_);
    std::string().swap(composed_);
  }
  if (!differs) return text;
  normal_.append(text.substr(copied));
  return normal_;
}

void Nfc::decompose(std::string_view segment) {
  points_.clear();
  Decomposition points{};
  if (segment.size() + kLongestDecomposition > points_.capacity()) {  // a byte gives at most one code point, except in the first character
    std::size_t count = 0;
    for (std::size_t at = 0; at < segment.size();) count += static_cast<std::size_t>(decompose_point(next_point(segment, at), points));
    points_.reserve(std::max<std::size_t>(count, 64));
  }
  for (std::size_t at = 0; at < segment.size();) {
    const int count = decompose_point(next_point(segment, at), points);
    for (int i = 0; i < count; ++i) {
      const std::int32_t point = points[static_cast<std::size_t>(i)];
      points_.push_back(point | utf8proc_get_property(point)->combining_class << kClassShift);
    }
  }
}

// Sorts consecutive combining marks by their classes. Marks of the same class keep their order.
void Nfc::order_marks() {
  const auto by_class = [](std::int32_t a, std::int32_t b) { return a >> kClassShift < b >> kClassShift; };
  for (auto at = points_.begin(); at != points_.end();) {
    const auto first = std::find_if(at, points_.end(), [](std::int32_t p) { return p > kPointMask; });
    at = std::find_if(first, points_.end(), [](std::int32_t p) { return p <= kPointMask; });
    if (!std::is_sorted(first, at, by_class)) std::stable_sort(first, at, by_class);
  }
  for (std::int32_t& point : points_) point &= kPointMask;
}

void Nfc::compose() {
  const std::size_t count = compose_points(points_.data(), points_.size());
  const auto each = [&](auto&& act) {
    for (std::size_t i = 0; i < count; ++i) {
      std::array<utf8proc_uint8_t, 4> bytes{};
      const auto size = utf8proc_encode_char(points_[i], bytes.data());
      act(std::string_view(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size)));
    }
  };
  composed_.clear();
  if (count > kLargeSegment) {  // counts the bytes first, because a string that grows by doubling takes up to three times its size
    std::size_t bytes = 0;
    each([&](std::string_view character) { bytes += character.size(); });
    composed_.reserve(bytes);
  }
  each([&](std::string_view character) { composed_.append(character); });
}

}  // namespace tessera::detail
