#!/usr/bin/env python3
"""The demonstration behind scripts/demo: train on the default device, compare all devices.

Usage: tools/demo.py [--tuff build/bin/tuff] [--seconds 180]
Two thirds of the seconds are the training's, which makes a step however slow the machine is; devices are
compared in what is left, and those for which no time is left are named.
"""
import argparse
import json
import math
import subprocess
import sys
import time

FIRST_STEPS = 10
NOT_COMPUTING = {"NULL", "DISK", "SHUFFLE"}  # or not to be compared
# Devices add in different orders; ten steps of float32 training may differ by this much, relatively.
LOSS_TOLERANCE = 5e-3
OUT_OF_TIME = "not compared: no time was left (--seconds)"
COLUMNS = [("device", "{}"), ("loss at 1", "{:.5f}"), (f"loss at {FIRST_STEPS}", "{:.5f}"),
           ("ms/step", "{:.2f}"), ("host us/step", "{:.0f}"), ("kernels", "{:.0f}"),
           ("submits", "{:.0f}"), ("compile ms", "{:.0f}"), ("driver", "{}")]


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


def run(arguments, seconds, capture):
    """(exit code, stdout, stderr); output is shown and not captured without `capture`. Code 124: it took longer."""
    pipe = subprocess.PIPE if capture else None
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return 124, *process.communicate()
        return process.returncode, out, err


def json_lines(text):
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def loss_of(row):
    return row.get("train_loss", row.get("loss"))


def measure(tuff, device, seconds):
    """One row of the table, or the reason why there is none."""
    command = [tuff, "train", "gpt", "--steps", str(FIRST_STEPS), "--json", "--device", device]
    code, out, err = run(command, max(1, seconds), capture=True)
    if code == 124:
        return None, OUT_OF_TIME
    rows = json_lines(out)
    done = next((r for r in reversed(rows) if "steps" in r), None)
    if code != 0 or done is None:
        lines = (err or "").strip().splitlines() or [f"exit code {code}"]
        return None, lines[-1]
    steps = {r["step"]: loss_of(r) for r in rows if "step" in r and loss_of(r) is not None}
    first = steps.get(1, math.nan)
    last = steps.get(FIRST_STEPS, done.get("train_loss", math.nan))
    numbers = [done.get(k, math.nan) for k in ("step_ms_median", "host_us_median", "kernels_per_step",
                                               "submits_per_step", "compile_ms")]
    return [device, first, last, *numbers, done.get("driver", "")], None


def format_cell(pattern, value):
    return "-" if isinstance(value, float) and math.isnan(value) else pattern.format(value)


def print_table(rows):
    cells = [[title for title, _ in COLUMNS]]
    cells += [[format_cell(p, v) for (_, p), v in zip(COLUMNS, row)] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    for line in cells:
        padded = [c.rjust(w) if 0 < i < len(COLUMNS) - 1 else c.ljust(w)
                  for i, (c, w) in enumerate(zip(line, widths))]
        print("  ".join(padded).rstrip())


def worst_difference(rows):
    """Largest relative difference of a loss from the first row's; infinite for NaN."""
    worst = 0.0
    for row in rows[1:]:
        for mine, reference in zip(row[1:3], rows[0][1:3]):
            difference = abs(mine - reference) / max(abs(reference), 1e-9)
            worst = max(worst, math.inf if math.isnan(difference) else difference)
    return worst


def compare(tuff, devices, clock):
    """Prints the table; True if every usable device trained and agrees."""
    devices = sorted(devices, key=lambda d: not d.get("default"))
    print(f"\nThe first {FIRST_STEPS} steps on every device:\n", flush=True)
    rows, problems = [], []
    for i, device in enumerate(devices):
        row, why = None, OUT_OF_TIME
        if clock.left() >= 5:
            row, why = measure(tuff, device["name"], clock.left() / (len(devices) - i))
        if row:
            rows.append(row)
            continue
        print(f"{device['name']}: {why}", flush=True)
        if why != OUT_OF_TIME:
            problems.append(why)
    if rows:
        print_table(rows)
    if len(rows) > 1:
        worst = worst_difference(rows)
        print(f"\nLargest relative difference of a loss between devices: {worst:.1e} "
              f"(limit {LOSS_TOLERANCE:.0e})")
        if worst > LOSS_TOLERANCE:
            problems.append("the devices disagree")
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tuff", default="build/bin/tuff")
    parser.add_argument("--seconds", type=float, default=180)
    options = parser.parse_args()
    run([options.tuff, "devices"], None, capture=False)
    code, out, err = run([options.tuff, "devices", "--json"], None, capture=True)
    devices = [d for d in json_lines(out) if d.get("usable") and d.get("kind") not in NOT_COMPUTING]
    if code != 0 or not devices:
        print(f"demo: no device can be used here. {err}", file=sys.stderr)
        return 1
    print("\nTraining a small GPT on the default device:\n", flush=True)
    clock = Clock(options.seconds)
    training = max(1.0, options.seconds * 2 / 3)
    code, _, _ = run([options.tuff, "train", "gpt", "--seconds", f"{training:.0f}"], None, capture=False)
    if code != 0:
        print(f"demo: 'tuff train gpt' failed with {code}", file=sys.stderr)
        return 1
    return 0 if compare(options.tuff, devices, clock) else 1


if __name__ == "__main__":
    sys.exit(main())
