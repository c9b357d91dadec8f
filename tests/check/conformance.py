#!/usr/bin/env python3
"""Runs the conformance suite on one device through `tuff check` and compares what was executed with
tests/data/check_counts.json: device x op x dtype -> how many cases passed or failed there.

Usage: conformance.py TUFF COUNTS DEVICE [--dtypes f32,i32] [--update] [-- more options of `tuff check`]
  DEVICE    CPU, SHUFFLE, AMD (emulated, with AMD_IFACE=MOCK), CUDA (by the library of tests/devices/cuda), NV
            (emulated, with NV_IFACE=MOCK), PoCL, or a part of a Vulkan driver's name: lavapipe, SwiftShader; with a tier of tiers.py forced on it: lavapipe/floor,
            PoCL/buffers
  --dtypes  of these alone
  --update  writes the counts of this run instead of comparing (also TUFF_UPDATE_GOLDENS=1)
Exit code: 0 as expected, 1 not, 77 the device is not there (a skip, which ctest counts and shows).
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

from tiers import TIERS

SKIP = 77
# What a driver calls itself, where that is another name.
DRIVERS = {"lavapipe": "llvmpipe", "AMD": "KFD (emulated)", "CUDA": "CUDA driver",
           "NV": "NVIDIA kernel driver (emulated)", "PoCL": "Portable Computing Language"}
ALWAYS_THERE = {"AMD", "CUDA", "NV"}  # emulated: nothing that a machine could lack
# Whose counts are expected, where another device runs the same kernels, or refuses the same cases.
PINNED_AS = {"CUDA": "AMD", "NV": "AMD", "SHUFFLE": "CPU", "SHUFFLE:visible": "CPU", "PoCL/buffers": "PoCL", "PoCL/coarse": "PoCL"}


def device_named(tuff, name):
    """The name that `tuff check --device` takes, or None and why."""
    driver = DRIVERS.get(name, name).lower()
    listing = subprocess.run([tuff, "devices", "--json"], capture_output=True, text=True, check=False).stdout
    rows = [json.loads(line) for line in listing.splitlines()]
    for row in rows:
        if row["usable"] and (row["name"] == name or driver in row["driver"].lower()):
            return row["name"], None
    reasons = [f"{r['name']}: {r['reason'] or r['driver']}" for r in rows]
    return None, "; ".join(reasons)


def run_check(tuff, device, more):
    """The JSON rows of a run, and its exit code."""
    command = [tuff, "check", "--device", device, "--json", *more]
    print(" ".join(command)[:400], flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return [json.loads(line) for line in result.stdout.splitlines()], result.returncode


def executed(tuff, rows):
    """op -> dtype -> cases that ran, in the suite's order: a refused case is none."""
    listing = subprocess.run([tuff, "check", "--list"], capture_output=True, text=True, check=True).stdout
    order = {name: i for i, name in enumerate(listing.split())}
    counts = collections.defaultdict(collections.Counter)
    for row in sorted(rows, key=lambda r: order[r["case"]]):
        if row["verdict"] != "unsupported":
            counts[row["op"]][row["dtype"]] += 1
    return {op: dict(by_dtype) for op, by_dtype in counts.items()}


def write_counts(path, all_counts):
    """One line per op, so that differences read well."""
    devices = []
    for device in sorted(all_counts):
        rows = [f"  {json.dumps(op)}: {json.dumps(by_dtype)}" for op, by_dtype in all_counts[device].items()]
        devices.append(f"{json.dumps(device)}: {{\n" + ",\n".join(rows) + "\n}")
    temporary = path.with_suffix(".new")
    temporary.write_text("{\n" + ",\n".join(devices) + "\n}\n", encoding="utf-8")
    temporary.replace(path)


def differences(pinned, counts):
    out = []
    for op in [*pinned, *(op for op in counts if op not in pinned)]:
        if pinned.get(op) != counts.get(op):
            out.append(f"{op}: pinned {pinned.get(op)}, executed {counts.get(op)}")
    return out


def show_worst(rows):
    """The largest errors, and what was not as expected."""
    known = [r for r in rows if r["error_ulp"]]
    for row in sorted(known, key=lambda r: -r["error_ulp"] / max(r["budget_ulp"], 1))[:5]:
        print(f"  {row['case']}: {row['error_ulp']:.3g} of {row['budget_ulp']:.3g} ULP")
    wrong = [r for r in rows if not r["expected"]]
    for row in wrong[:40]:
        print(f"{row['verdict'].upper()} {row['case']}: {row['error_ulp']} of {row['budget_ulp']} ULP: {row['message'][:300]}")
    if len(wrong) > 40:
        print(f"... and {len(wrong) - 40} more")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tuff")
    parser.add_argument("counts", type=pathlib.Path)
    parser.add_argument("device")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=[])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    driver, _, tier = options.device.partition("/")
    os.environ.update(TIERS[tier] if tier else {})
    device, why = device_named(options.tuff, driver)
    if device is None and driver in ALWAYS_THERE:
        print(f"no device {options.device}, which needs nothing of the machine ({why})")
        return 1
    if device is None:
        print(f"skipped: no device {options.device} ({why})")
        return SKIP
    begin = time.monotonic()
    if options.update and options.dtypes:
        parser.error("--update writes the counts of all dtypes")
    chosen = ["--filter", ",".join(f"*/{t}/*" for t in options.dtypes)] if options.dtypes else []
    rows, code = run_check(options.tuff, device, [*chosen, *options.more])
    counts = executed(options.tuff, rows)
    total = sum(sum(c.values()) for c in counts.values())
    refused = sum(r["verdict"] == "unsupported" and r["expected"] for r in rows)
    print(f"{options.device} ({device}): {total} cases executed, {refused} refused as expected, "
          f"{time.monotonic() - begin:.0f} s")
    show_worst(rows)
    all_counts = json.loads(options.counts.read_text(encoding="utf-8")) if options.counts.exists() else {}
    pinned_as = PINNED_AS.get(options.device, options.device)
    if options.update or os.environ.get("TUFF_UPDATE_GOLDENS") == "1":
        write_counts(options.counts, {**all_counts, pinned_as: counts})
        return code
    pinned = all_counts.get(pinned_as, {})
    if options.dtypes:
        pinned = {op: of for op, row in pinned.items() if (of := {t: n for t, n in row.items() if t in options.dtypes})}
    differing = differences(pinned, counts)
    if differing:
        print(f"{len(differing)} ops were not executed as often as {options.counts.name} pins; "
              "run this with --update if that is meant:")
        print("\n".join(differing[:20]))
    return 1 if differing else code


if __name__ == "__main__":
    sys.exit(main())
