#!/usr/bin/env python3
"""Both software Vulkan drivers: listed beside each other, and training the same GPT as the CPU.

Usage: drivers_test.py PATH_OF_TUFF [ICD_FILE_OF_SWIFTSHADER]
Without the ICD file the test is skipped (exit code 77); with it, a device that is not listed, not
usable or computes something else is a failure.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TUFF = ICD = None
SKIPPED = 77
LOSS_TOLERANCE = 1e-3
SMALL_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4", "--steps", "10"]


def tuff(*arguments, **environment):
    inherited = {k: v for k, v in os.environ.items() if k not in ("VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES")}
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([TUFF, *arguments, "--json"], capture_output=True, text=True, cwd=folder,
                                timeout=500, check=False, env={**inherited, **environment})
    if result.returncode != 0:
        raise AssertionError(f"{arguments}: {result.returncode} {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def vulkan_devices(**environment):
    return [row for row in tuff("devices", **environment) if row["kind"] == "VULKAN" and row["usable"]]


def losses(device, **environment):
    rows = tuff("train", "gpt", "--device", device, *SMALL_GPT, "--sample", "0", **environment)
    return [row["loss"] for row in rows if row["event"] == "step"]


class Drivers(unittest.TestCase):
    def test_swiftshader_is_listed_beside_the_installed_drivers(self):
        alone = vulkan_devices(VK_DRIVER_FILES=ICD)
        self.assertEqual([row["name"] for row in alone], ["VULKAN:0"])
        self.assertIn("SwiftShader", alone[0]["driver"])
        installed = vulkan_devices()
        both = vulkan_devices(VK_ADD_DRIVER_FILES=ICD)
        self.assertEqual([row["name"] for row in both], [f"VULKAN:{i}" for i in range(len(installed) + 1)])
        # The drivers that can do more natively stand before it.
        self.assertIn("SwiftShader", both[-1]["driver"])
        self.assertEqual([row["driver"] for row in both[:-1]], [row["driver"] for row in installed])

    def test_ten_gpt_steps_agree_with_the_cpu(self):
        mine, wanted = losses("VULKAN:0", VK_DRIVER_FILES=ICD), losses("CPU")
        self.assertEqual(len(wanted), 10)
        for step, (a, b) in enumerate(zip(mine, wanted, strict=True)):
            self.assertAlmostEqual(a, b, delta=LOSS_TOLERANCE, msg=f"step {step}")


if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv[1])
    ICD = sys.argv[2] if len(sys.argv) > 2 else ""
    if not ICD:
        print("SwiftShader is missing (scripts/swiftshader provides it): skipped")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0]])
