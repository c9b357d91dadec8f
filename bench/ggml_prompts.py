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
import argparse
import functools
import json
import pathlib
import sys

import ggml_decode as decode
import ggml_shaders as shaders

TOKENS, STEPS = 512, 512
BANDWIDTH = {"7900xtx": 960e3, "7800xt": 624e3, "strix-halo": 256e3}  # bytes per us; src/emu/profile/chip.cpp
# Arrays of f32 as wide as the model that a layer reads and writes: norms, rotations, attention, residuals.
WIDE_ARRAYS, HIDDEN_ARRAYS = 16, 3

MODELS = {**decode.MODELS,
          "Llama 3.1 8B Q4_0": decode.Model(32, 4096, 1024, 14336, 128256, "q4_0"),
          "Llama 3.1 8B Q4_K_S": decode.Model(32, 4096, 1024, 14336, 128256, "q4_k")}
TILES = "https://github.com/ggml-org/llama.cpp/pull/18749"
# Card, model, tokens per second (pp512), build and source.
MEASURED = [
    ("strix-halo", "Llama 3.1 8B Q4_0", 875.24, "Radeon 8060S, RADV, January 2026, the tile of these shaders", TILES),
    ("strix-halo", "Llama 3.1 8B Q4_K_S", 793.51, "as above; some of its matrices are in Q5_K", TILES),
    ("strix-halo", "Llama 3.1 8B Q8_0", 742.46, "as above", TILES),
    ("strix-halo", "Llama 2 7B Q4_0", 1338, "Radeon 8060S, RADV, 0253fb21f (9187), flash attention", decode.MEASURED[4][5]),
    ("7800xt", "Qwen3 8B Q4_K_M", 1855, "RX 7800 XT, RADV, 55309e7 (10068)", decode.NOTES),
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

    def prompt_us(self, chip, name):
        model = MODELS[name]
        products = model.products()[:-1]  # of the layers
        products_us = sum(self.product_us(chip, *key) for key in products)
        flops = sum(2 * TOKENS * rows * columns for _, rows, columns in products)
        attention = model.layers * 4 * TOKENS * TOKENS * model.width
        moved = model.layers * TOKENS * 4 * (WIDE_ARRAYS * model.width + HIDDEN_ARRAYS * model.hidden)
        return {"products_us": products_us, "attention_us": products_us * attention / flops,
                "others_us": moved / BANDWIDTH[chip], "tflops": flops / products_us * 1e-6}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of ggml's shaders as SPIR-V")
    parser.add_argument("--tuff", default="build/bin/tuff")
    parser.add_argument("--only", default="", help="chips or models whose name has this in it")
    o = parser.parse_args()
    if not o.folder.is_dir():
        sys.exit(f"ggml_prompts: {o.folder} is no folder; see the top of this file for what it has to hold")
    predictor, lines = Predictor(o.tuff, o.folder), []
    for chip, model, measured, build, source in MEASURED:
        if o.only not in f"{chip} {model}":
            continue
        parts = predictor.prompt_us(chip, model)
        rate = TOKENS * 1e6 / (parts["products_us"] + parts["attention_us"] + parts["others_us"])
        out = {"chip": chip, "model": model, "predicted": rate, "measured": measured, "off": rate / measured - 1,
               **parts, "build": build, "source": source}
        print(json.dumps(out), flush=True)
        lines.append(f"{chip:<11} {model:<20} {rate:>9.1f} {measured:>9.1f} {rate / measured - 1:>+7.0%}")
    print(f"{'chip':<11} {'model':<20} {'predicted':>9} {'measured':>9} {'off':>7}", *lines, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
