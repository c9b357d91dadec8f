#!/usr/bin/env python3
"""Tokens per second of llama.cpp's decode on RDNA 3, as the model of a GPU's time predicts it from ggml's shaders,
beside what llama-bench measured on real cards.

A token's time is the sum of the times that `tuff gpu --spirv` estimates for the kernels that ggml-vulkan launches for
it. Matrix-vector products are emulated at their own sizes, of at most 4096 rows: what a longer one takes beyond its
launch is in proportion. RMS norms and quantizations are emulated; other small kernels (rotation, cache, activation,
attention over at most 128 tokens) are counted, each with the time of a quantization, which is nearly all launch.
Weights are read from memory each time, as none of these models fits a cache.
Needs what bench/ggml_shaders.py needs. Writes a line of JSON for each measurement, then a table.
Usage: bench/ggml_decode.py FOLDER [--tuff PROGRAM] [--only TEXT]
"""
import functools

import ggml_shaders as shaders

MOST_ROWS = 4096
NORMS = 2           # of a layer, each with its multiplication
OTHERS = 6          # two rotations, the cache of values, attention and its reduction, activation
QUANTIZATIONS = 4   # inputs of the products with integers: of q, k and v; of the output; of gate and up; of down


def more_bits(layer, layers):
    """Whether Q4_K_M keeps a layer's values and down projections in Q6_K (llama.cpp, llama-quant.cpp)."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


class Model:
    def __init__(self, layers, width, keys, hidden, words, kind, mixed=False):
        self.layers, self.width, self.keys, self.hidden, self.words = layers, width, keys, hidden, words
        self.kind, self.mixed = kind, mixed

    def products(self):
        """(type, rows, columns) of each matrix that a token goes through."""
        out = []
        for layer in range(self.layers):
            better = "q6_k" if self.mixed and more_bits(layer, self.layers) else self.kind
            out += [(self.kind, self.width, self.width)] * 2 + [(self.kind, self.keys, self.width)]
            out += [(better, self.keys, self.width)] + [(self.kind, self.hidden, self.width)] * 2
            out.append((better, self.width, self.hidden))
        last = "q8_0" if self.kind == "q8_0" else "q6_k"
        return out + [(last, self.words, self.width)]


MODELS = {"Llama 2 7B Q4_0": Model(32, 4096, 4096, 11008, 32000, "q4_0"),
          "Llama 3.1 8B Q8_0": Model(32, 4096, 1024, 14336, 128256, "q8_0"),
          "Qwen3 8B Q4_K_M": Model(36, 4096, 1024, 12288, 151936, "q4_k", mixed=True)}

NOTES = "a user's notes; see bench/results/ggml-2026-11-25.md"
TOOLBOXES = ("https://github.com/kyuz0/amd-strix-halo-toolboxes, "
             "benchmark/results/llama-2-7b.Q4_0__vulkan_radv__fa1.log")
# Card, model, tokens per second (tg128), build and source, whether that build multiplies integers (since August 2025).
MEASURED = [
    ("7900xtx", "Llama 2 7B Q4_0", 172, "RX 7900 XTX, RADV, March 2026: 167 to 177",
     "https://github.com/ggml-org/llama.cpp/issues/20934", True),
    ("7800xt", "Llama 3.1 8B Q8_0", 66.33, "RX 7800 XT, RADV, b10068-54a1a10", NOTES, False),
    ("7800xt", "Qwen3 8B Q4_K_M", 101.07, "RX 7800 XT, RADV, 55309e7 (10068)", NOTES, True),
    ("w7900", "Llama 2 7B Q4_0", 112.75, "Radeon Pro W7900, RADV, ba1cb19c (4327), December 2024", NOTES, False),
    ("strix-halo", "Llama 2 7B Q4_0", 55.73, "Radeon 8060S, RADV, 0253fb21f (9187)", TOOLBOXES, True),
]


class Predictor:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    @functools.cache
    def row(self, chip, key, *arguments):
        case = {"mat_vec": shaders.mat_vec, "quantize": shaders.quantize, "rms_norm": shaders.rms_norm}[key](*arguments)
        return shaders.required_row(self.program, self.folder, case, chip)

    def product_us(self, chip, kind, rows, columns, integer):
        row = self.row(chip, "mat_vec", kind, min(rows, MOST_ROWS), columns, integer and kind in shaders.INTEGER_ROWS)
        launch = row["parts_us"]["launch"]
        return launch + (row["time_us"] - launch) * max(1, rows / MOST_ROWS)

    def tokens(self, chip, name, integer):
        model = MODELS[name]
        products = model.products()
        cost = {key: self.product_us(chip, *key, integer) for key in set(products)}
        norm = self.row(chip, "rms_norm", 1, model.width)["time_us"]
        small = self.row(chip, "quantize", model.width)["time_us"]
        count = model.layers * (OTHERS + (QUANTIZATIONS if integer else 0)) + 1
        parts = {"products_us": sum(cost[key] for key in products), "small_us": count * small,
                 "norms_us": (model.layers * NORMS + 1) * norm}
        kernels = len(products) + count + model.layers * NORMS + 1
        return 1e6 / sum(parts.values()), {"integer_products": integer, **parts, "kernels": kernels}


def main():
    o = shaders.options(__doc__, "chips or models whose name has this in it")
    shaders.compare(o, MEASURED, Predictor(o.tuff, o.folder).tokens)


if __name__ == "__main__":
    main()
