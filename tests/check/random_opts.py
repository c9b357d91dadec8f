#!/usr/bin/env python3
"""The conformance suite on one device with random legal optimizations in every kernel, over many seeds
(TUFF_RANDOM_OPTS). Prints how many draws were legal and how often each kind was applied.

Usage: random_opts.py TUFF DEVICE [--seeds N] [--first SEED] [--every N] [--products N] [--attention N]
                      [--least N]
  DEVICE      as of conformance.py
  --seeds N   10
  --every N   of the suite's cases each seed runs one in N, another part of them each (default 320)
  --products N  and one in N of those that multiply matrices, as only their kernels copy tiles (default 320)
  --attention N  and one in N of those of long attention, as only its kernels have slabs (default 8)
  --least N   every kind that the device allows has to have been applied so often in all (default 1)
Exit code: 0, 1, or 77 where the device is missing (a skip, which ctest counts and shows).
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

from conformance import SKIP, device_named


PRODUCTS = re.compile("matmul|linear|conv|einsum|attention|lstm|gru")


def environment(seed):
    """Of every other seed sums stay whole: of one that is drawn in parts no row is kept. Two threads have heads enough
    to keep rows of them."""
    drawn = {"TUFF_RANDOM_OPTS": str(seed), "TUFF_THREADS": "2"}
    return drawn if seed % 2 else {**drawn, "TUFF_SKIP": "parts"}


def run_seed(tuff, device, seed, cases):
    """The rows of the cases, the counts of each kind, and what went wrong beside."""
    command = [tuff, "check", "--device", device, "--json", "--filter", ",".join(cases)]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            env={**os.environ, **environment(seed)})
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    rows = [line for line in lines if "case" in line]
    counts = [line["random_opts"] for line in lines if "random_opts" in line]
    complaint = "" if len(rows) == len(cases) and len(counts) == 1 else result.stderr[-2000:]
    return rows, counts, complaint


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tuff")
    parser.add_argument("device")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--every", type=int, default=320)
    parser.add_argument("--products", type=int, default=320)
    parser.add_argument("--attention", type=int, default=8)
    parser.add_argument("--least", type=int, default=1)
    options = parser.parse_args()
    device, why = device_named(options.tuff, options.device)
    if device is None:
        print(f"skipped: no device {options.device} ({why})")
        return SKIP
    listing = subprocess.run([options.tuff, "check", "--list"], capture_output=True, text=True, check=True).stdout.split()
    samples = [(listing, options.every), ([case for case in listing if PRODUCTS.search(case)], options.products),
               ([case for case in listing if "attention_rows" in case], options.attention),
               ([case for case in listing if "pair_product" in case], 1)]  # alone in having a CPU's matrices
    tried, applied = collections.Counter(), collections.Counter()
    total = wrong = 0
    begin = time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        cases = dict.fromkeys(case for group, n in samples for case in group[seed % n::n])
        rows, counts, complaint = run_seed(options.tuff, device, seed, list(cases))
        for kinds in counts:
            tried.update({kind: n["tried"] for kind, n in kinds.items()})
            applied.update({kind: n["applied"] for kind, n in kinds.items()})
        total += len(rows)
        bad = [row for row in rows if not row["expected"]]
        wrong += len(bad) + bool(complaint)
        for row in bad:
            drawn = " ".join(f"{name}={value}" for name, value in environment(seed).items())
            print(f"{row['verdict'].upper()} {drawn} {options.tuff} check --device {device} "
                  f"--filter '{row['case']}': {row['error_ulp']} of {row['budget_ulp']} ULP: {row['message'][:300]}")
        if complaint:
            print(f"seed {seed}: {complaint}")
        sys.stdout.flush()
    legal = sum(applied.values())
    print(f"{options.device} ({device}): {total} cases over {options.seeds} seeds, {wrong} not as expected, "
          f"{time.monotonic() - begin:.0f} s; {legal} of {sum(tried.values())} random optimizations were legal "
          f"({100 * legal / max(sum(tried.values()), 1):.0f} %): "
          + ", ".join(f"{kind} {applied[kind]}" for kind in tried))
    seldom = [kind for kind in tried if applied[kind] < options.least]
    if seldom or not tried:
        print(f"applied less than {options.least} times: {', '.join(seldom) or 'all'}")
    return 1 if wrong or seldom or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
