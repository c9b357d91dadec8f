#!/usr/bin/env python3
"""One forced tier of Vulkan on the first Vulkan device: what the listing shows, a fixed sample of the
conformance suite, and ten training steps that give the losses of the device as it is.

Usage: tiers_test.py PATH_OF_TUFF TIER [--every N] [--digits] [--validation]
  --every N     samples one in N of the suite's cases; 1: all of them
  --digits      also trains the digits net
  --validation  also trains under the Khronos layer, with synchronization validation
Exit code: 0, 1, or 77 where there is no Vulkan device (a skip, which ctest counts and shows).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from tiers import REFUSED, SHOWN, TIERS

SKIPPED = 77
LOSS_TOLERANCE = 1e-3  # of training_test.py, between devices
GPT = ["gpt", "--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4", "--sample", "0"]
DIGITS = ["digits", "--test-images", "64"]


class Failed(Exception):
    pass


def run(tuff, arguments, environment):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([tuff, *arguments], capture_output=True, text=True, cwd=folder, timeout=900,
                                check=False, env={**os.environ, **environment})
    return result


def rows(tuff, arguments, environment):
    result = run(tuff, [*arguments, "--json"], environment)
    if result.returncode:
        raise Failed(f"{arguments}: {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def vulkan_device(tuff, environment):
    # Another device may be the default, or there may be none.
    listing = run(tuff, ["devices", "--json"], environment).stdout
    for row in map(json.loads, listing.splitlines()):
        if row["kind"] == "VULKAN" and row["usable"]:
            return row
    return None


def check_listing(tuff, tier, environment):
    device = vulkan_device(tuff, environment)
    if device is None:
        raise Failed(f"no usable Vulkan device on tier {tier}: {run(tuff, ['devices'], environment).stdout}")
    for name, value in SHOWN[tier].items():
        if device["features"].get(name) != value:
            raise Failed(f"tuff devices shows {name}={device['features'].get(name)}, not {value}")
    print(f"{device['name']} {device['driver']}: {SHOWN[tier]}, disabled {device['features']['disabled']}", flush=True)
    return device["name"]


def check_sample(tuff, tier, every, device, environment):
    names = run(tuff, ["check", "--list"], {}).stdout.split()
    sample = names[::every]
    chosen = [] if every == 1 else ["--filter", ",".join(sample)]
    result = run(tuff, ["check", "--device", device, *chosen, "--json"], environment)
    verdicts = [json.loads(line) for line in result.stdout.splitlines()]
    refusal = REFUSED.get(tier)
    named = [v for v in verdicts if refusal and v["verdict"] == "unsupported" and refusal in v["message"]]
    if refusal and not 0 < len(named) < len(verdicts) / 4:
        raise Failed(f"{len(named)} of {len(verdicts)} sampled cases are refused for {refusal}")
    wrong = [v for v in verdicts if not v["expected"] and v not in named]
    for v in wrong[:20]:
        print(f"{v['verdict'].upper()} {v['case']}: {v['message'][:400]}")
    if wrong or result.returncode not in (0, int(bool(named))) or len(verdicts) < len(sample):
        raise Failed(f"{len(wrong)} of {len(verdicts)} sampled cases (of {len(sample)} asked for) are not as expected, "
                     f"exit code {result.returncode}: {result.stderr[-2000:]}")
    refused = sum(v["verdict"] == "unsupported" for v in verdicts)
    print(f"conformance: {len(verdicts)} cases, {refused} refused as expected, {len(named)} of them for {refusal}", flush=True)


def train(tuff, device, what, environment):
    lines = rows(tuff, ["train", *what, "--device", device, "--steps", "10"], environment)
    return [r["loss"] for r in lines if r["event"] == "step"], lines[-1]


def check_training(tuff, device, what, environment):
    wanted, _ = train(tuff, device, what, {})
    got, done = train(tuff, device, what, environment)
    print(f"{what[0]}: losses {got}; untouched {wanted}; submits per step {done['submits_per_step']}, "
          f"kernels {done['kernels_per_step']}", flush=True)
    far = [i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if not abs(a - b) <= LOSS_TOLERANCE]
    if len(got) != 10 or far:
        raise Failed(f"{what[0]}: losses differ by more than {LOSS_TOLERANCE} at steps {far}")


def check_silent(tuff, device, what, environment):
    layered = {**environment, "TUFF_VK_VALIDATION": "1",
               "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
    result = run(tuff, ["train", *what, "--device", device, "--steps", "4", "--json"], layered)
    # Long work shows its progress.
    said = [line for line in result.stderr.splitlines() if line and not line.startswith(f"{what[0]}: step ")]
    if result.returncode or said:
        raise Failed(f"{what[0]} under the validation layers: {result.returncode}\n{result.stderr[:4000]}")
    print(f"{what[0]}: silent under the validation layers", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tuff")
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("--every", type=int, default=40)
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--validation", action="store_true")
    options = parser.parse_args()
    tuff = os.path.abspath(options.tuff)
    if vulkan_device(tuff, {}) is None:
        print("skipped: there is no usable Vulkan device")
        return SKIPPED
    environment = TIERS[options.tier]
    try:
        device = check_listing(tuff, options.tier, environment)
        check_sample(tuff, options.tier, options.every, device, environment)
        for what in [GPT, DIGITS] if options.digits else [GPT]:
            check_training(tuff, device, what, environment)
            if options.validation:
                check_silent(tuff, device, what, environment)
    except Failed as e:
        print(f"FAILED on tier {options.tier}: {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
