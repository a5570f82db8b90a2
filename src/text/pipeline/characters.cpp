#include "text/pipeline/characters.hpp"

#include <utf8proc.h>

#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

utf8proc_category_t category_of(CodePoint c) noexcept { return utf8proc_category(c); }

bool is_between(CodePoint c, CodePoint low, CodePoint high) noexcept { return c >= low && c <= high; }

// Returns whether the symbol (category So) has the property Other_Alphabetic: letters in circles and squares.
bool is_alphabetic_symbol(CodePoint c) noexcept {
  return is_between(c, 0x24B6, 0x24E9) || is_between(c, 0x1F130, 0x1F149) || is_between(c, 0x1F150, 0x1F169) ||
         is_between(c, 0x1F170, 0x1F189);
}

}  // namespace

CodePoint next_code_point(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  const unsigned size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned point = size == 1 ? lead : lead & (0x7Fu >> size);
  for (unsigned i = 1; i < size; ++i) point = point << 6 | (byte(i) & 0x3Fu);
  at += size;
  return static_cast<CodePoint>(point);
}

std::size_t previous_character(std::string_view text, std::size_t at) noexcept {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u);
  return at;
}

bool is_white_space(CodePoint c) noexcept {
  if (c < 0x80) return c == ' ' || is_between(c, '\t', '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || is_between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_word_character(CodePoint c) noexcept {
  if (c < 0x80) return is_between(c | 0x20, 'a', 'z') || is_between(c, '0', '9') || c == '_';
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_SO: return is_alphabetic_symbol(c);
    default: return c == 0x200C || c == 0x200D;
  }
}

bool is_numeric(CodePoint c) noexcept {
  if (c < 0x80) return is_between(c, '0', '9');
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_cjk_ideograph(CodePoint c) noexcept {
  return is_between(c, 0x4E00, 0x9FFF) || is_between(c, 0x3400, 0x4DBF) || is_between(c, 0x20000, 0x2A6DF) ||
         is_between(c, 0x2A700, 0x2B73F) || is_between(c, 0x2B740, 0x2B81F) || is_between(c, 0x2B920, 0x2CEAF) ||
         is_between(c, 0xF900, 0xFAFF) || is_between(c, 0x2F800, 0x2FA1F);
}

void append_lower_case(std::string& out, CodePoint c) {
  if (c == 0x130) {
    out.append("i\xCC\x87");
  } else {
    append_utf8(out, static_cast<std::uint32_t>(utf8proc_tolower(c)));
  }
}

}  // namespace tessera::detail
