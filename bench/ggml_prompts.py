#!/usr/bin/env python3
"""Tokens per second of llama.cpp's prompts (pp512) on RDNA 3, as the model of a GPU's time predicts it from ggml's
shaders with cooperative matrices, beside what llama-bench measured on real cards.

A prompt's time is that of the products of its layers, emulated with all of their rows and STEPS of the reduction (what
a longer one takes beyond its launch is in proportion), and of the rest by what it moves through memory or multiplies:
norms, rotations, sums with the residual and the activation at the bus's rate, attention at the products' rate. The
logits of the last token are left out. Needs what bench/ggml_shaders.py needs, compiled for cooperative matrices
(matmul_q4_0_f32_f16acc_cm1.spv ...; glslc of Debian 13 knows them), and TUFF_RADV naming a folder of scripts/mesa.
Writes a line of JSON for each measurement, then a table.
Usage: TUFF_RADV=$(scripts/mesa) bench/ggml_prompts.py FOLDER [--tuff PROGRAM] [--only TEXT]
"""
import functools

import ggml_decode as decode
import ggml_shaders as shaders

TOKENS, STEPS = 512, 512
BANDWIDTH = {"7900xtx": 960e3, "7800xt": 624e3, "strix-halo": 256e3}  # bytes per us; src/emu/profile/chip.cpp
# Arrays of f32 as wide as the model that a layer reads and writes: norms, rotations, attention, residuals.
WIDE_ARRAYS, HIDDEN_ARRAYS = 16, 3


class Largest:
    """A model of which only the largest products are emulated: all of its values are multiplied at their rate."""

    layers = width = hidden = 0

    def __init__(self, values, *products):
        self.values, self.largest = values, list(products)


FEED_FORWARD = [("q4_k", 17408, 5120), ("q4_k", 17408, 5120), ("q4_k", 5120, 17408)]
MODELS = {**decode.MODELS,
          "Qwen3.8 27B Q4_K_S": Largest(27.32e9, *FEED_FORWARD),
          "Llama 3.1 8B Q4_0": decode.Model(32, 4096, 1024, 14336, 128256, "q4_0"),
          "Llama 3.1 8B Q4_K_S": decode.Model(32, 4096, 1024, 14336, 128256, "q4_k")}
TILES = "https://github.com/ggml-org/llama.cpp/pull/18749"
# Card, model, tokens per second (pp512), build and source.
MEASURED = [
    ("strix-halo", "Llama 3.1 8B Q4_0", 875.24, "Radeon 8060S, RADV, January 2026, the tile of these shaders", TILES),
    ("strix-halo", "Llama 3.1 8B Q4_K_S", 793.51, "as above; some of its matrices are in Q5_K", TILES),
    ("strix-halo", "Llama 3.1 8B Q8_0", 742.46, "as above", TILES),
    ("strix-halo", "Llama 2 7B Q4_0", 1338, "Radeon 8060S, RADV, 0253fb21f (9187), flash attention",
     decode.TOOLBOXES),
    ("7800xt", "Qwen3 8B Q4_K_M", 1855, "RX 7800 XT, RADV, 55309e7 (10068)", decode.NOTES),
    ("7900xtx", "Qwen3.8 27B Q4_K_S", 930.61, "RX 7900 XTX, RADV, b10516, pp2048",
     "https://github.com/ggml-org/llama.cpp/issues/28752"),
]


class Predictor:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    @functools.cache
    def row(self, chip, kind, rows):
        case = shaders.mat_mat_matrices(kind, rows, TOKENS, STEPS)
        return shaders.required_row(self.program, self.folder, case, chip)

    def product_us(self, chip, kind, rows, columns):
        row = self.row(chip, kind, rows)
        launch = row["parts_us"]["launch"]
        return launch + (row["time_us"] - launch) * columns / STEPS

    def tokens(self, chip, name):
        model = MODELS[name]
        part = isinstance(model, Largest)
        products = model.largest if part else model.products()[:-1]  # of the layers
        multiplied = sum(rows * columns for _, rows, columns in products)
        products_us = sum(self.product_us(chip, *key) for key in products)
        tflops = 2 * TOKENS * multiplied / products_us * 1e-6
        products_us *= model.values / multiplied if part else 1
        attention = model.layers * 2 * TOKENS * model.width / multiplied
        moved = model.layers * TOKENS * 4 * (WIDE_ARRAYS * model.width + HIDDEN_ARRAYS * model.hidden)
        parts = {"products_us": products_us, "attention_us": products_us * attention,
                 "others_us": moved / BANDWIDTH[chip]}
        return TOKENS * 1e6 / sum(parts.values()), {**parts, "tflops": tflops}


def main():
    o = shaders.options(__doc__, "chips or models whose name has this in it")
    shaders.compare(o, MEASURED, Predictor(o.tuff, o.folder).tokens)


if __name__ == "__main__":
    main()
