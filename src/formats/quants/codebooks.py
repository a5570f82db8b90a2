#!/usr/bin/env python3
"""Writes codebooks.inc: the grids of the IQ1, IQ2 and IQ3 formats.

Needs: pip install gguf

gguf-py (MIT licence) has ggml's grids as packed strings: 2 bits a value of eight, or 3 bits of
four. Here an entry is one number of 16 bits, value i at bit 2 i or 3 i; what the bits stand for
is in codebooks.hpp. Running it twice writes the same bytes.
"""
import pathlib

from gguf import quants

OUT = pathlib.Path(__file__).resolve().parent / "codebooks.inc"
GRIDS = [("Iq2xxs", quants.IQ2_XXS), ("Iq2xs", quants.IQ2_XS), ("Iq2s", quants.IQ2_S),
         ("Iq3xxs", quants.IQ3_XXS), ("Iq3s", quants.IQ3_S), ("Iq1", quants.IQ1_S)]


def entries(fmt):
    fmt.init_grid()
    n, width = fmt.grid_shape
    bits = 2 if width == 8 else 3
    levels = {value: i for i, value in enumerate(fmt.grid_map)}
    for row in fmt.grid.reshape(n, width):
        yield sum(levels[int(value)] << (bits * i) for i, value in enumerate(row))


def main():
    lines = ["// Written by codebooks.py from gguf-py's quants.py (MIT licence): not to be changed by hand."]
    for name, fmt in GRIDS:
        numbers = [f"0x{n:x}" for n in entries(fmt)]
        lines.append(f"constexpr std::uint16_t k{name}[{len(numbers)}] = {{")
        line = "   "
        for number in numbers:
            if len(line) + len(number) + 2 > 118:
                lines.append(line)
                line = "   "
            line += f" {number},"
        lines += [line, "};"]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
