#!/usr/bin/env python3
"""What the search of schedules costs and reaches: TUFF_BEAM=2 on a 1024 matmul with empty caches and again from
the cache, and over twelve kernels the search (`tuff tune`, width 2) beside a sweep (width 64, no early end).

Usage: bench/search.py [TUFF] [--device CPU] [--sweep-seconds 60] [--only NAME ...]
The sweep follows 64 schedules at once and measures all neighbours of each for so long as it is given: what it ends
with stands for the best there is. What both found is then timed in turns, one process after the other, and the ratio is
that of the medians, the search's over the sweep's: times of two searches are those of two moments of the machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

KERNELS = [("matmul", "256"), ("matmul", "512"), ("matmul", "1024"), ("matmul", "509x1021x767"), ("gemv", "1000x4099"),
           ("conv", "128x1x28x28x32x5"), ("conv", "128x32x14x14x64x3"), ("conv", "8x64x56x56x64x3"),
           ("reduce", "1048576"), ("softmax", "1024x1024"), ("layernorm", "1024x1024"), ("attention", "16x4x64x32")]
TURNS = 5


def run(command, environment):
    begin = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if result.returncode:
        sys.exit(f"{' '.join(command)}: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()], time.monotonic() - begin


def tune(tuff, device, name, sizes, width, seconds, folder, out):
    """How many schedules were measured, and the seconds that took; `out` names the best."""
    command = [tuff, "tune", name, "--device", device, "--width", str(width), "--seconds", str(seconds), "--out", out,
               "--again", "--json", "--sizes", sizes]
    rows, wall = run(command, {"TUFF_CACHE_DIR": folder})
    return sum(row.get("candidates", 0) for row in rows[:-1]), wall


def in_turns(tuff, device, name, sizes, folder, files):
    """Medians in microseconds of the kernels that each file names."""
    command = [tuff, "bench", name, "--device", device, "--seconds", "0.3", "--json", "--sizes", sizes]
    times = [[] for _ in files]
    for _ in range(TURNS):
        for file, of_file in zip(files, times):
            rows, _ = run(command, {"TUFF_TUNED": file, "TUFF_CACHE_DIR": folder})
            of_file.append(sum(row["ms_median"] for row in rows) * 1e3)
    return [statistics.median(of_file) for of_file in times]


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
            files = [os.path.join(folder, f"{who}.json") for who in ("search", "sweep")]
            candidates, wall = tune(options.tuff, options.device, name, sizes, 2, 10, folder, files[0])
            more, _ = tune(options.tuff, options.device, name, sizes, 64, options.sweep_seconds, folder, files[1])
            before, found, swept = in_turns(options.tuff, options.device, name, sizes, folder, ["", *files])
            print(f"| {name} {sizes} | {before:.1f} | {found:.1f} | {swept:.1f} | {found / swept:.3f} | "
                  f"{candidates} / {more} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
