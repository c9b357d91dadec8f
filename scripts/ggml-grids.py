#!/usr/bin/env python3
"""Writes src/io/grids_table.h: the points that GGUF's types IQ1, IQ2 and IQ3 number, from the Python package gguf
(github.com/ggml-org/llama.cpp, gguf-py/gguf/quants.py; ggml itself has them in src/ggml-common.h).

Usage: scripts/ggml-grids.py [--output src/io/grids_table.h]
They were found by searching for those that models use most, so no formula gives them. A point is 8 numbers of 2 bits or
4 of 3 bits, the first in the lowest bits: which of the grid's values each element is.
"""
import argparse
import pathlib

import numpy
from gguf import quants

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = """// Points of the grids of GGUF's types IQ1, IQ2 and IQ3, which models' elements are near to most
// often: data of the format, written by scripts/ggml-grids.py. A point is 8 numbers of 2 bits or 4
// of 3 bits, the first in the lowest bits. Called by dequantize_grids.
#pragma once

#include <cstdint>

namespace tuff::io {
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "src/io/grids_table.h")
    lines = [HEADER]
    for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"):
        kind = getattr(quants, name)
        kind.init_grid()
        points, size = kind.grid_shape
        values = kind.grid.reshape(points, size)
        numbers = numpy.searchsorted(numpy.array(kind.grid_map), values)
        bits = 16 // size if size == 8 else 3
        packed = (numbers << (bits * numpy.arange(size))).sum(1)
        lines.append(f"inline constexpr uint16_t kGrid{name.replace('_', '')}[{points}] = {{")
        words = [f"0x{p:04x}," for p in packed]
        lines += ["    " + " ".join(words[i:i + 11]) for i in range(0, points, 11)]
        lines.append("};\n")
    lines.append("}  // namespace tuff::io\n")
    parser.parse_args().output.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
