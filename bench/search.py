#!/usr/bin/env python3
"""What the search of schedules costs and reaches: TUFF_BEAM=2 on a 1024 matmul with empty caches and again from
the cache, and over twelve kernels the search (`tuff tune`, width 2) beside a sweep (width 64, no early end).

Usage: bench/search.py [TUFF] [--device CPU] [--sweep-seconds 60] [--only NAME ...]
The sweep follows 64 schedules at once and measures all neighbours of each for so long as it is given: what it ends
with stands for the best there is. Ratios are of times of the device's clock, the search's over the sweep's.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

KERNELS = [("matmul", "256"), ("matmul", "512"), ("matmul", "1024"), ("matmul", "509x1021x767"), ("gemv", None),
           ("conv", None), ("reduce", None), ("softmax", "1024x1024"), ("layernorm", "1024x1024"), ("attention", None),
           ("transpose", "1024x1024"), ("elementwise", None)]


def run(command, environment):
    begin = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if result.returncode:
        sys.exit(f"{' '.join(command)}: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()], time.monotonic() - begin


def tuned_us(tuff, device, name, sizes, width, seconds, folder):
    out = os.path.join(folder, "tuned.json")
    command = [tuff, "tune", name, "--device", device, "--width", str(width), "--seconds", str(seconds), "--out", out,
               "--again", "--json", *(["--sizes", sizes] if sizes else [])]
    rows, wall = run(command, {"TUFF_CACHE_DIR": folder})
    done = rows[-1]
    return done["us"], done["heuristic_us"], sum(row.get("candidates", 0) for row in rows[:-1]), wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tuff", nargs="?", default="build/bin/tuff")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--sweep-seconds", type=float, default=60)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = [options.tuff, "bench", "matmul", "--sizes", "1024", "--device", options.device, "--seconds", "0.2",
                 "--json"]
        for cache in ("cold", "warm"):
            rows, wall = run(bench, {"TUFF_BEAM": "2", "TUFF_CACHE_DIR": folder})
            print(f"TUFF_BEAM=2 matmul 1024, {cache}: {wall:.1f} s, then {rows[0]['ms_median']:.2f} ms", flush=True)
        print("| kernel | heuristics us | search us | sweep us | search / sweep | measured | search s |\n" + "|---" * 7 + "|")
        for name, sizes in KERNELS:
            if options.only and name not in options.only:
                continue
            found, before, candidates, wall = tuned_us(options.tuff, options.device, name, sizes, 2, 10, folder)
            swept, _, more, _ = tuned_us(options.tuff, options.device, name, sizes, 64, options.sweep_seconds, folder)
            print(f"| {name} {sizes or ''} | {before:.1f} | {found:.1f} | {swept:.1f} | {found / swept:.3f} | "
                  f"{candidates} / {more} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
