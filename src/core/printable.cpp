#include "core/printable.hpp"

#include <algorithm>

#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

// Returns whether a character can be shown as it is. `sequence`: the character, as one valid UTF-8 sequence.
bool is_printable(std::string_view sequence) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) >= 0x20 && byte(0) != 0x7F;
  if (sequence.size() == 2) return byte(0) != 0xC2 || byte(1) >= 0xA0;  // U+0080 to U+009F
  if (byte(0) != 0xE2) return true;
  // U+2028 to U+202E end lines or change the direction of writing. U+2066 to U+2069 change the direction too.
  const bool line_or_turn = byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE;
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return !line_or_turn && !isolate;
}

}  // namespace

void make_printable(std::string& text) noexcept {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::string_view rest = std::string_view(text).substr(from);
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::valid && is_printable(rest.substr(0, step.size))) {
      std::copy(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(step.size), text.begin() + static_cast<std::ptrdiff_t>(to));
      to += step.size;
    } else {
      text[to++] = '?';
    }
    from += step.size;
  }
  text.resize(to);  // never longer, so it cannot throw
}

std::string printable(std::string_view text, std::size_t limit) {
  std::size_t end = std::min(text.size(), limit);
  // If the cut is inside a character, steps back to the character's first byte: at most three bytes, because a character has at most four.
  if (end < text.size()) {
    for (std::size_t back = 0; back < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; ++back) --end;
  }
  std::string out(text.substr(0, end));
  make_printable(out);
  if (end < text.size()) out += "...";
  return out;
}

}  // namespace tessera::detail
