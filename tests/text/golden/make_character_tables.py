#!/usr/bin/env python3
"""Writes src/text/pipeline/character_tables.cpp: the characters that PyPI's `tokenizers` takes for marks, punctuation and control characters.

The crate has the tables of an old version of Unicode, whatever the system has. Usage: make_character_tables.py > character_tables.cpp"""
from tokenizers import normalizers, pre_tokenizers

CHARACTERS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]


def table(name, has):
    ranges = []
    for c in filter(has, CHARACTERS):
        if ranges and c == ranges[-1][1] + 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    print(f"constexpr CharacterRange {name}[] = {{")
    line = "   "
    for low, high in ranges:
        entry = f" {{0x{low:X}, 0x{high:X}}},"
        if len(line) + len(entry) > 138:
            print(line)
            line = "   "
        line += entry
    print(line.rstrip(",") + "};")


bert = normalizers.BertNormalizer(False, False, True, False)
accents = normalizers.StripAccents()
clean = normalizers.BertNormalizer(True, False, False, False)
split = pre_tokenizers.BertPreTokenizer()
print("// Made by tests/text/golden/make_character_tables.py from what PyPI's `tokenizers` does with each character.")
print('#include "text/pipeline/character_tables.hpp"\n\n#include <algorithm>\n#include <span>\n\nnamespace tessera::detail {\nnamespace {\n')
print("// clang-format off")
table("kNonspacingMarks", lambda c: bert.normalize_str(chr(c)) == "")
table("kMarks", lambda c: accents.normalize_str(chr(c)) == "")
table("kPunctuation", lambda c: len(split.pre_tokenize_str(f"a{chr(c)}b")) == 3)
table("kOthers", lambda c: c != 0xFFFD and clean.normalize_str(f"a{chr(c)}b") == "ab")
print("// clang-format on")
print("""
bool has(std::span<const CharacterRange> table, std::int32_t c) noexcept {
  const auto after = std::ranges::upper_bound(table, c, {}, &CharacterRange::low);
  return after != table.begin() && c <= std::prev(after)->high;
}

}  // namespace

bool is_nonspacing_mark(std::int32_t c) noexcept { return c >= 0x300 && has(kNonspacingMarks, c); }
bool is_mark(std::int32_t c) noexcept { return c >= 0x300 && has(kMarks, c); }
bool is_punctuation(std::int32_t c) noexcept { return has(kPunctuation, c); }
bool is_other(std::int32_t c) noexcept { return has(kOthers, c); }

}  // namespace tessera::detail""")
