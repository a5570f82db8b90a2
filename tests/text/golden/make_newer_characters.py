#!/usr/bin/env python3
"""Writes the table of src/text/newer_characters.cpp: characters that Unicode has added since version 14, as PyPI's `tokenizers` knows them.

Usage, with Python 3.11 (whose unicodedata is version 14) and PyPI's tokenizers and unicodedata2: make_newer_characters.py > newer_characters.cpp"""
import unicodedata

import unicodedata2
from tokenizers import Regex, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0"

# (bytes in UTF-8, category): an older character of this category. Scripts: of letters, patterns ask for Han alone.
OLDER = {(3, "Lu"): 0x1E00, (3, "Ll"): 0x1E01, (3, "Lm"): 0x1D2C, (3, "Lo"): 0x1200, (3, "Mn"): 0x1AB0, (3, "Mc"): 0x1B04, (3, "So"): 0x2300, (3, "Po"): 0x2016, (3, "No"): 0x2460,
         (4, "Lu"): 0x10400, (4, "Ll"): 0x10428, (4, "Lm"): 0x16F93, (4, "Lo"): 0x10380, (4, "Mn"): 0x1D167, (4, "Mc"): 0x1D165, (4, "Nd"): 0x1D7CE, (4, "No"): 0x1D360,
         (4, "Po"): 0x10100, (4, "Pd"): 0x10EAD, (4, "So"): 0x1F300, (4, "Sm"): 0x1D6C1, (4, "Cf"): 0xE0020, (4, "Han"): 0x20000}


def knows(c, category):
    return len(pre_tokenizers.Split(Regex(rf"\p{{{category}}}"), "isolated").pre_tokenize_str(f"\x01{chr(c)}\x01")) == 3


ranges = []
for c in range(0x80, 0x110000):
    if 0xD800 <= c < 0xE000 or unicodedata.category(chr(c)) != "Cn":
        continue
    category = unicodedata2.category(chr(c))
    if category == "Cn" or not knows(c, category):
        continue
    size = len(chr(c).encode())
    older = OLDER[size, "Han" if unicodedata2.name(chr(c), "").startswith("CJK UNIFIED") else category]
    assert unicodedata.category(chr(older)) == category and len(chr(older).encode()) == size
    if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == older:
        ranges[-1][1] = c
    else:
        ranges.append([c, c, older])

print("// Made by tests/text/golden/make_newer_characters.py from the characters that PyPI's `tokenizers` knows.")
print('#include "text/newer_characters.hpp"\n\n#include <algorithm>\n#include <cstdint>\n\nnamespace tessera::detail {\nnamespace {\n')
print("// Characters `low` to `high` have the class of `older`, and as many bytes in UTF-8.")
print("struct NewerRange {\n  std::uint32_t low, high, older;\n};\n\n// clang-format off\nconstexpr NewerRange kNewer[] = {")
line = "   "
for low, high, older in ranges:
    entry = f" {{0x{low:X}, 0x{high:X}, 0x{older:X}}},"
    if len(line) + len(entry) > 138:
        print(line)
        line = "   "
    line += entry
print(line.rstrip(",") + "};\n// clang-format on\n")
print(r"""unsigned unit_at(std::string_view text, std::size_t at) noexcept { return static_cast<unsigned char>(text[at]); }

// Returns the number of bytes of a character by its first one.
std::size_t size_by(unsigned first) noexcept { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

// Returns the older character for the one at `at`, which has `size` bytes; 0 if it is not newer.
std::uint32_t older_at(std::string_view text, std::size_t at, std::size_t size) noexcept {
  std::uint32_t c = unit_at(text, at) & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) c = c << 6 | (unit_at(text, at + i) & 0x3Fu);
  const auto* range = std::ranges::lower_bound(kNewer, c, {}, &NewerRange::high);
  return range != std::end(kNewer) && range->low <= c ? range->older : 0;
}

}  // namespace

std::string_view with_older_characters(std::string_view text, std::string& copy) {
  bool copied = false;
  for (std::size_t at = 0; at < text.size();) {
    const unsigned first = unit_at(text, at);
    const std::size_t size = size_by(first);
    const bool may_be_newer = size == 4 || (size == 3 && (first < 0xE4 || first == 0xEA));  // E4 to E9: ideographs, all of them old
    const std::uint32_t older = may_be_newer ? older_at(text, at, size) : 0;
    if (older != 0) {
      if (!copied) copy.assign(text);
      copied = true;
      std::uint32_t rest = older;
      for (std::size_t i = size; i-- > 1; rest >>= 6) copy[at + i] = static_cast<char>(0x80u | (rest & 0x3Fu));
      copy[at] = static_cast<char>((size == 3 ? 0xE0u : 0xF0u) | rest);
    }
    at += size;
  }
  return copied ? std::string_view(copy) : text;
}

}  // namespace tessera::detail""")
