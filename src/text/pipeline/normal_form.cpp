#include "text/pipeline/normal_form.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "core/utf8.hpp"
#include "text/nfc.hpp"

namespace tessera::detail {
namespace {

constexpr int kLongestForm = 18;  // code points that one character becomes at most (U+FDFA)
constexpr int kClassAt = 21;      // code points take 21 bits; the combining class is stored above them
constexpr CodePoint kLowBits = (1 << kClassAt) - 1;
constexpr std::size_t kPartBytes = std::size_t{1} << 14;  // a part ends before the first character after this many bytes that begins anew

// Returns whether a text can be cut in front of the character: it is ASCII, so nothing composes with the character before it.
bool begins_anew(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }

void compose(std::vector<CodePoint>& points) {
  // utf8proc 2.8 takes U+11A7 for an absent final consonant, and drops it. To keep U+11A7, the characters are composed in several calls,
  // and each U+11A7 after the first character begins a new call.
  std::size_t kept = 0;
  for (std::size_t begin = 0; begin < points.size();) {
    const auto found = std::find(points.begin() + static_cast<std::ptrdiff_t>(begin) + 1, points.end(), 0x11A7);
    const auto end = static_cast<std::size_t>(found - points.begin());
    constexpr auto how = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto count = static_cast<std::size_t>(
        utf8proc_normalize_utf32(points.data() + begin, static_cast<utf8proc_ssize_t>(end - begin), how));
    std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(begin), count, points.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += count;
    begin = end;
  }
  points.resize(kept);
}

}  // namespace

void NormalFormer::decompose(std::string_view text, NormalForm form) {
  points_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = next_code_point(text, at);
    if (c < 0x80) {
      points_.push_back(c);
      continue;
    }
    std::array<CodePoint, kLongestForm> points{};
    const auto how = static_cast<utf8proc_option_t>(form.compatibility ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE);
    const auto count = static_cast<std::size_t>(utf8proc_decompose_char(c, points.data(), kLongestForm, how, nullptr));
    for (std::size_t i = 0; i < std::min(count, points.size()); ++i) {
      points_.push_back(points[i] | utf8proc_get_property(points[i])->combining_class << kClassAt);
    }
  }
}

// Sorts consecutive combining marks by their classes. Marks of the same class keep their order.
void NormalFormer::order_marks() {
  const auto by_class = [](CodePoint a, CodePoint b) { return a >> kClassAt < b >> kClassAt; };
  for (auto at = points_.begin(); at != points_.end();) {
    const auto first = std::find_if(at, points_.end(), [](CodePoint p) { return p > kLowBits; });
    at = std::find_if(first, points_.end(), [](CodePoint p) { return p <= kLowBits; });
    if (!std::is_sorted(first, at, by_class)) std::stable_sort(first, at, by_class);
  }
  for (CodePoint& point : points_) point &= kLowBits;
}

void NormalFormer::normalize(std::string_view text, NormalForm form, std::string& out) {
  out.clear();
  out.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t plain = begin;
    while (plain < text.size() && begins_anew(text[plain])) ++plain;
    // The last character of a run of plain characters may be composed with the next character, so leave it out.
    if (plain < text.size() && plain > begin) --plain;
    if (plain > begin) {
      out.append(text.substr(begin, plain - begin));
      begin = plain;
      continue;
    }
    std::size_t end = std::min(begin + 1, text.size());
    while (end < text.size() && !(begins_anew(text[end]) && (end - begin > kPartBytes || (end + 1 < text.size() && begins_anew(text[end + 1]))))) ++end;
    decompose(text.substr(begin, end - begin), form);
    order_marks();
    if (form.composed) compose(points_);
    for (const CodePoint point : points_) append_utf8(out, static_cast<std::uint32_t>(point));
    begin = end;
  }
}

}  // namespace tessera::detail
