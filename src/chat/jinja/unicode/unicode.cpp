#include "chat/jinja/unicode/unicode.hpp"

#include <algorithm>

#include "chat/jinja/unicode/unicode_tables.hpp"
#include "core/utf8.hpp"

namespace tessera::jinja {
namespace {

using detail::Utf8Kind;
using detail::utf8_step;

bool within(const tables::Range* ranges, std::size_t count, std::uint32_t character) noexcept {
  const auto* at = std::lower_bound(ranges, ranges + count, character,
                                    [](const tables::Range& range, std::uint32_t c) { return range.last < c; });
  return at != ranges + count && at->first <= character;
}

struct CaseTable {
  const tables::Mapping* runs;
  std::size_t n_runs;
  const tables::Several* several;
  std::size_t n_several;
};

CaseTable case_table(Case to) noexcept {
  switch (to) {
    case Case::upper:
      return {tables::to_upper, tables::to_upper_size, tables::to_upper_several, tables::to_upper_several_size};
    case Case::lower:
      return {tables::to_lower, tables::to_lower_size, tables::to_lower_several, tables::to_lower_several_size};
    case Case::title: break;
  }
  return {tables::to_title, tables::to_title_size, tables::to_title_several, tables::to_title_several_size};
}

// The Greek letter sigma: its lower case at the end of a word is another letter. So str.lower() has to look at the neighbouring letters.
constexpr std::uint32_t kSigma = 0x3A3;

bool is_cased(std::uint32_t c) noexcept { return is_upper(c) || is_lower(c); }

bool ends_word(std::string_view text, std::size_t at) noexcept {
  const auto is_ignorable = [](std::uint32_t c) { return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019; };
  bool before = false;
  for (std::size_t i = at; i > 0;) {
    do --i;
    while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
    const std::uint32_t c = first_character(text.substr(i));
    if (is_ignorable(c)) continue;
    before = is_cased(c);
    break;
  }
  if (!before) return false;
  for (std::size_t i = at + character_size(text.substr(at)); i < text.size(); i += character_size(text.substr(i))) {
    const std::uint32_t c = first_character(text.substr(i));
    if (is_ignorable(c)) continue;
    return !is_cased(c);
  }
  return true;
}

}  // namespace

std::size_t character_size(std::string_view text) noexcept {
  const auto step = utf8_step(text);
  return step.kind == Utf8Kind::valid ? step.size : 1;
}

std::size_t count_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += character_size(text.substr(at))) ++count;
  return count;
}

std::size_t character_offset(std::string_view text, std::size_t index, std::size_t from) noexcept {
  for (; index > 0 && from < text.size(); --index) from += character_size(text.substr(from));
  return from;
}

std::uint32_t first_character(std::string_view text) noexcept {
  const auto step = utf8_step(text);
  if (step.kind != Utf8Kind::valid) return 0xFFFD;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  switch (step.size) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3: return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

bool is_space(std::uint32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_printable(std::uint32_t c) noexcept { return within(tables::printable, tables::printable_size, c); }
bool is_alphabetic(std::uint32_t c) noexcept { return within(tables::alphabetic, tables::alphabetic_size, c); }
bool is_digit(std::uint32_t c) noexcept { return within(tables::digit, tables::digit_size, c); }
bool is_upper(std::uint32_t c) noexcept { return within(tables::upper_case, tables::upper_case_size, c); }
bool is_lower(std::uint32_t c) noexcept { return within(tables::lower_case, tables::lower_case_size, c); }

void append_in_case(Text& out, std::string_view whole, std::size_t at, Case to, TextOrigin origin) {
  std::uint32_t character = first_character(whole.substr(at));
  if (character == 0xFFFD) return out.append(whole.substr(at, character_size(whole.substr(at))), origin);
  if (character == kSigma && to == Case::lower) return out.append(ends_word(whole, at) ? "\xCF\x82" : "\xCF\x83", origin);
  const CaseTable table = case_table(to);
  const auto* several = std::lower_bound(table.several, table.several + table.n_several, character,
                                         [](const tables::Several& s, std::uint32_t c) { return s.character < c; });
  if (several != table.several + table.n_several && several->character == character) {
    return out.append(several->text, origin);
  }
  const auto* run = std::lower_bound(table.runs, table.runs + table.n_runs, character,
                                     [](const tables::Mapping& r, std::uint32_t c) { return r.last < c; });
  // Two runs that each have every second character may overlap. So the character may be in this run or in the next.
  for (int i = 0; i < 2 && run != table.runs + table.n_runs && run->first <= character; ++i, ++run) {
    if ((character - run->first) % run->step == 0) {
      character = static_cast<std::uint32_t>(static_cast<std::int64_t>(character) + run->delta);
      break;
    }
  }
  std::string bytes;
  detail::append_utf8(bytes, character);
  out.append(bytes, origin);
}

Text to_case(const Text& text, Case to) {
  Text out;
  std::size_t at = 0;
  text.for_each([&](std::string_view piece, TextOrigin origin) {
    for (const std::size_t end = at + piece.size(); at < end; at += character_size(text.bytes().substr(at))) {
      append_in_case(out, text.bytes(), at, to, origin);
    }
  });
  return out;
}

std::string lower(std::string_view text) {
  return std::string(to_case(Text(std::string(text), TextOrigin::from_template), Case::lower).bytes());
}

}  // namespace tessera::jinja
