#!/usr/bin/env python3
# Prints the tables of characters that Python's str methods use: make_unicode_tables.py ranges > unicode_ranges.cpp, and mappings.
import sys

LAST = 0x110000


def ranges(test):
    out, start = [], None
    for c in range(LAST + 1):
        inside = c < LAST and test(chr(c))
        if inside and start is None:
            start = c
        if not inside and start is not None:
            out.append((start, c - 1))
            start = None
    return out


def print_ranges(name, test):
    print(f"const Range {name}[] = {{")
    line = "   "
    found = ranges(test)
    for first, last in found:
        part = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(part) > 118:
            print(line)
            line = "   "
        line += part
    print(line + "\n};")
    print(f"const std::size_t {name}_size = {len(found)};\n")


def print_mapping(name, mapped):
    """Runs {first, last, step, delta}: every step-th character maps to itself + delta; and those that become several."""
    single = [(c, ord(mapped(chr(c))) - c) for c in range(LAST) if len(mapped(chr(c))) == 1 and mapped(chr(c)) != chr(c)]
    several = [(c, mapped(chr(c))) for c in range(LAST) if len(mapped(chr(c))) > 1]
    runs = []
    for c, delta in single:
        if runs:
            first, last, step, d = runs[-1]
            gap = c - last
            if d == delta and gap <= 2 and (first == last or gap == step):
                runs[-1] = (first, c, gap, d)
                continue
        runs.append((c, c, 1, delta))
    print(f"const Mapping {name}[] = {{")
    line = "   "
    for first, last, step, delta in runs:
        part = f" {{0x{first:X}, 0x{last:X}, {step}, {delta}}},"
        if len(line) + len(part) > 118:
            print(line)
            line = "   "
        line += part
    print(line + "\n};")
    print(f"const std::size_t {name}_size = {len(runs)};\n")
    print(f"const Several {name}_several[] = {{")
    line = "   "
    for c, text in several:
        escaped = "".join(f"\\x{byte:02X}" for byte in text.encode())
        part = f" {{0x{c:X}, \"{escaped}\"}},"
        if len(line) + len(part) > 118:
            print(line)
            line = "   "
        line += part
    if not several:
        line += ' {0, ""},'
    print(line + "\n};")
    print(f"const std::size_t {name}_several_size = {len(several)};\n")


def main():
    import unicodedata
    print("// Made by make_unicode_tables.py from Python's tables, Unicode " + unicodedata.unidata_version + ".")
    print('#include "chat/jinja/unicode/unicode_tables.hpp"\n\nnamespace tessera::jinja::tables {\n')
    if sys.argv[1] == "ranges":
        print_ranges("printable", lambda c: c.isprintable())
        print_ranges("alphabetic", str.isalpha)
        print_ranges("digit", str.isdigit)
        print_ranges("upper_case", str.isupper)
        print_ranges("lower_case", str.islower)
    else:
        print_mapping("to_upper", str.upper)
        print_mapping("to_lower", str.lower)
        print_mapping("to_title", str.title)
    print("}  // namespace tessera::jinja::tables")


main()
