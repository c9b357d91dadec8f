#!/usr/bin/env python3
"""ggml's Vulkan shaders beside tuff's kernels of the same sizes, by `tuff gpu`: lines, waves, registers, time.

Needs a folder of ggml's shaders as SPIR-V, named as its own shader generator names them
(mul_mat_vec_q4_0_f32_f32_subgroup_no_shmem.spv, matmul_f32_f32_fp32.spv, soft_max_f32.spv ...): what a build of
ggml with its Vulkan backend leaves behind. Specialization constants, push constants and grids are those of
ggml-vulkan.cpp at d99724f2 for AMD, with a subgroup of 32, since the emulated GPU runs waves of 32: RADV's default
on RDNA 3 is 64. Shaders that are not in the folder are named and left out. Writes a line of JSON for each run.
Usage: bench/ggml_shaders.py FOLDER [--tuff PROGRAM] [--chip NAME] [--only TEXT]
"""
import argparse
import json
import pathlib
import subprocess
import sys

LANES = 32
FLOAT, HALF = 4, 2


def ceil_div(a, b):
    return -(-a // b)


class Quant:
    """A type of weights: how many values a block has and how many bytes."""

    def __init__(self, values, size, rows, contents="random"):
        self.values, self.size, self.rows, self.contents = values, size, rows, contents

    def bytes_of(self, count):
        return count // self.values * self.size


# Blocks: ggml-common.h. Rows of a workgroup (NUM_ROWS): ggml_vk_load_shaders, AMD but GCN.
TYPES = {"f32": Quant(1, FLOAT, 1, "random-f32"), "f16": Quant(1, HALF, 2, "random-f16"), "q4_0": Quant(32, 18, 2),
         "q8_0": Quant(32, 34, 1), "q4_k": Quant(256, 144, 2), "q6_k": Quant(256, 210, 2)}
INTEGER_ROWS = {"q4_0": 1, "q4_k": 1}  # of the shaders that take the vector as q8_1


def mat_vec(kind, m, k, integer=False):
    """y[m] = A[m, k] x[k]."""
    weights = TYPES[kind]
    rows = INTEGER_ROWS[kind] if integer else weights.rows
    vector = f"{k // 128 * 144}:random" if integer else f"{k * FLOAT}:random-f32"
    push = [k, k, k, m, m * k, k, m, 0, 0, 1, 1, 1, 1]
    name = f"mul_mat_vec_{kind}_{'q8_1_f32' if integer else 'f32_f32'}_subgroup_no_shmem"
    return {"shader": name, "sizes": f"{m}x{k}", "groups": (ceil_div(m, rows), 1, 1),
            "constants": {0: LANES, 1: rows, 2: 1},
            "buffers": [f"{weights.bytes_of(m * k)}:{weights.contents}", vector, str(m * FLOAT), "4", "4"],
            "push": ",".join(map(str, push)),
            "tuff": ["gemv", "--sizes", f"{m}x{k}", "--dtype", kind] if kind in ("f32", "f16") else None}


def quantize(k):
    """A vector of f32 as q8_1, as mat_vec(integer=True) takes it."""
    return {"shader": "quantize_q8_1_x4_subgroup", "sizes": str(k), "groups": (ceil_div(k, 32 * LANES // 8), 1, 1),
            "constants": {0: LANES}, "buffers": [f"{k * FLOAT}:random-f32", str(ceil_div(k, 128) * 144)],
            "push": f"{k},{k // 32}", "tuff": None}


def mat_mat(kind, n, aligned=True):
    """The large tile without matrix instructions: 128 x 128 by 128 invocations."""
    name, size, contents = {"f32": ("matmul_f32_f32_fp32", FLOAT, "random-f32"),
                            "f16": ("matmul_f16", HALF, "random-f16")}[kind]
    push = [n, n, n, n, n, n, n * n, n * n, n * n, 0, 1, n, 1, 1, 1, 1, n]
    return {"shader": name, "sizes": str(n), "groups": (ceil_div(n, 128), ceil_div(n, 128), 1),
            "constants": {0: 128, 1: 128, 2: 128, 4: LANES * 2, 5: 64, 6: 2, 7: 4, 8: 4, 10: LANES, 11: int(aligned)},
            "buffers": [f"{n * n * size}:{contents}", f"{n * n * size}:{contents}", str(n * n * FLOAT)],
            "push": ",".join(map(str, push)), "tuff": ["matmul", "--sizes", str(n), "--dtype", kind]}


def mat_mat_matrices(kind, m, n, k):
    """d[n, m] = b[n, k] A[m, k]^T by cooperative matrices with sums in f16: AMD's large tile, 128 x 128 by 256."""
    weights = TYPES[kind]
    push = [m, n, k, k, k, m, m * k, n * k, m * n, 0, 1, k, 1, 1, 1, 1, n]
    return {"shader": f"matmul_{kind}_f32_f16acc_cm1", "sizes": f"{m}x{n}x{k}",
            "groups": (ceil_div(m, 128), ceil_div(n, 128), 1),
            "constants": {0: 256, 1: 128, 2: 128, 3: 32, 4: LANES, 5: 64, 6: 2, 7: 16, 8: 16, 9: 16, 10: LANES, 11: 1},
            "buffers": [f"{weights.bytes_of(m * k)}:{weights.contents}", f"{n * k * FLOAT}:random-f32",
                        str(m * n * FLOAT)],
            "push": ",".join(map(str, push)), "tuff": None}


def strides(ne0, ne1, size=1):
    return [size, ne0, ne0 * ne1, ne0 * ne1]


def rms_norm(rows, columns):
    ne, total = [columns, rows, 1, 1], rows * columns
    push = [total] + (ne + strides(columns, rows)) * 3 + [0]
    text = ",".join(map(str, push)) + ",f32:0.00001,0,i32:0"
    buffers = [f"{total * FLOAT}:random-f32"] * 2 + [str(total * FLOAT)]
    return {"shader": "rms_norm_f32", "sizes": f"{rows}x{columns}", "groups": (rows, 1, 1), "constants": {0: 0, 1: 0},
            "buffers": buffers, "push": text, "tuff": ["rmsnorm", "--sizes", f"{rows}x{columns}"]}


def soft_max(rows, columns):
    """Without mask or sinks; long rows take workgroups of 512."""
    total = rows * columns
    push = [columns, 0, columns, rows, 1, 1, 1, columns, total, total]
    text = ",".join(map(str, push)) + f",f32:1,0,0,0,u32:1,{rows},0"
    buffers = [f"{total * FLOAT}:random-f32", f"{columns * FLOAT}:zero", "4", str(total * FLOAT)]
    return {"shader": "soft_max_f32", "sizes": f"{rows}x{columns}", "groups": (rows, 1, 1),
            "constants": {0: 512 if columns > 1024 else LANES}, "buffers": buffers, "push": text,
            "tuff": ["softmax", "--sizes", f"{rows}x{columns}"]}


def divisions(n):
    """The constants by which the shader divides by n*n, n*n and n with a product: three factors, the shifts packed."""
    rows = [(d, (d - 1).bit_length()) for d in (n * n, n * n, n)]
    factors = [(((1 << 32) * ((1 << shift) - d)) // d + 1) % (1 << 32) for d, shift in rows]
    return factors + [sum(shift << 8 * k for k, (_, shift) in enumerate(rows))]


def copy(shader, n, groups):
    """dst[i, j] = src[j, i] of n x n, f32."""
    total = n * n
    source, target = [n, n, 1, 1, n, 1, total, total], [n, n, 1, 1, 1, n, total, total]
    push = [total] + source + target + [0] + [0] * 4 + divisions(n) * 2
    return {"shader": shader, "sizes": f"{n}x{n}", "groups": groups, "constants": {},
            "buffers": [f"{total * FLOAT}:random-f32", str(total * FLOAT)], "push": ",".join(map(str, push)),
            "tuff": ["transpose", "--sizes", f"{n}x{n}"]}


def copies(n):
    tiles, rest = ceil_div(n, 32), n * n // 262144
    return [copy("cpy_transpose_32", n, (tiles, tiles, 1)), copy("cpy_f32_f32", n, (1, 512, max(rest, 1)))]


def cases():
    out = [mat_vec(kind, 4096, 4096) for kind in TYPES]
    out += [mat_vec(kind, 4096, 4096, integer=True) for kind in INTEGER_ROWS] + [quantize(4096)]
    out += [mat_mat("f32", 1024), mat_mat("f16", 1024), soft_max(1024, 4096), rms_norm(1024, 4096)]
    return out + copies(2048)


def run_tuff(program, arguments):
    result = subprocess.run([program, "gpu", *arguments, "--json"], capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1) or not result.stdout:
        raise RuntimeError(f"tuff gpu {' '.join(arguments)}: {result.stderr.strip()}")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return rows, result.stderr.strip()


def run_case(program, folder, case, chip):
    """The shader's row of `tuff gpu --json`, or None where the folder has no such file."""
    file = folder / f"{case['shader']}.spv"
    if not file.exists():
        print(f"ggml_shaders: {file.name} is not in {folder}: left out", file=sys.stderr)
        return None
    arguments = ["--spirv", str(file), "--chip", chip, "--groups", ",".join(map(str, case["groups"])),
                 "--push", case["push"]]
    for constant, value in case["constants"].items():
        arguments += ["--constant", f"{constant}={value}"]
    for binding, value in enumerate(case["buffers"]):
        arguments += ["--buffer", f"0:{binding}={value}"]
    rows, wrong = run_tuff(program, arguments)
    row = rows[0]
    row.update({"side": "ggml", "shader": case["shader"], "sizes": case["sizes"], "findings": wrong})
    return row


def required_row(program, folder, case, chip):
    """The same for a prediction that needs it: ends the program where the shader is missing."""
    row = run_case(program, folder, case, chip)
    if row is None:
        sys.exit("ggml_shaders: a prediction needs this shader")
    if row["findings"]:
        print(f"ggml_shaders: {case['shader']} {case['sizes']}: {row['findings']}", file=sys.stderr)
    return row


def own_row(program, case, chip):
    rows, wrong = run_tuff(program, [*case["tuff"], "--chip", chip])
    row = dict(rows[-1])  # the sum of its kernels
    slowest = max(rows[:-1], key=lambda r: r["time_us"])
    row.update({key: slowest[key] for key in ("chip", "vgprs", "spills", "lds_bytes", "waves_per_simd", "limit")})
    row.update({"side": "tuff", "shader": " ".join(case["tuff"]), "sizes": case["sizes"], "findings": wrong})
    return row


def options(description, only, *more):
    """What the command lines of these programs have in common; `more`: (name, default) of other options."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of ggml's shaders as SPIR-V")
    parser.add_argument("--tuff", default="build/bin/tuff")
    parser.add_argument("--only", default="", help=only)
    for name, default in more:
        parser.add_argument(name, default=default)
    o = parser.parse_args()
    if not o.folder.is_dir():
        parser.exit(1, f"{o.folder} is no folder; see the top of bench/ggml_shaders.py for what it has to hold\n")
    return o


def compare(o, measured, predict):
    """Predictions beside measurements: rows of card, model, rate, build, source and what `predict` takes besides; it
    gives a rate and its parts."""
    lines = []
    for chip, model, rate, build, source, *more in measured:
        if o.only not in f"{chip} {model}":
            continue
        predicted, parts = predict(chip, model, *more)
        row = {"chip": chip, "model": model, "predicted": predicted, "measured": rate, "off": predicted / rate - 1}
        print(json.dumps({**row, **parts, "build": build, "source": source}), flush=True)
        lines.append(f"{chip:<11} {model:<20} {predicted:>9.1f} {rate:>9.1f} {predicted / rate - 1:>+7.0%}")
    print(f"{'chip':<11} {'model':<20} {'predicted':>9} {'measured':>9} {'off':>7}", *lines, sep="\n", file=sys.stderr)


def main():
    o = options(__doc__, "cases whose shader has this in its name", ("--chip", "7900xtx"))
    ran = 0
    for case in cases():
        if o.only not in case["shader"]:
            continue
        row = run_case(o.tuff, o.folder, case, o.chip)
        for out in filter(None, (row, own_row(o.tuff, case, o.chip) if row and case["tuff"] else None)):
            print(json.dumps(out), flush=True)
        ran += row is not None
    if not ran:
        sys.exit("ggml_shaders: nothing was run")


if __name__ == "__main__":
    main()
