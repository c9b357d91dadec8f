#!/usr/bin/env python3
"""The program `tuff` on emulated NVIDIA GPUs, through the library that stands in for CUDA's driver.

Usage: cuda_test.py PATH_OF_TUFF PATH_OF_TWO_DEVICES PATH_OF_LIBRARY [unittest options]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TUFF = TWO_DEVICES = LIBRARY = None
TINY_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4"]


class Cuda(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=folder, timeout=600,
                                  check=False, env={**os.environ, "TUFF_CUDA_LIBRARY": LIBRARY,
                                                    "TUFF_TIMEOUT_MS": "300000", **environment})

    def rows(self, *arguments, **environment):
        result = self.run_program(TUFF, *arguments, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_devices_are_listed_and_never_the_default(self):
        cuda = [r for r in self.rows("devices", FAKE_CUDA="gpus:2") if r["kind"] == "CUDA"]
        self.assertEqual([r["name"] for r in cuda], ["CUDA:0", "CUDA:1"])
        self.assertEqual({(r["usable"], r["default"]) for r in cuda}, {(True, False)})

    def test_without_a_driver_the_reason_names_the_remedy(self):
        gone = {"TUFF_CUDA_LIBRARY": "/nonexistent/libcuda.so"}
        cuda = [r for r in self.rows("devices", **gone) if r["kind"] == "CUDA"]
        self.assertEqual([r["usable"] for r in cuda], [False])
        self.assertIn("TUFF_CUDA_LIBRARY='/nonexistent/libcuda.so'", cuda[0]["reason"])

    def losses(self, *arguments, **environment):
        rows = self.rows("train", "gpt", *TINY_GPT, "--steps", 4, "--sample", 0, *arguments, **environment)
        self.assertEqual(rows[-1]["submits_per_step"], 1)
        return [r["loss"] for r in rows if r["event"] == "step"]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted = self.losses("--device", "CPU")
        for machine in ("", "seed:3,integrated:1"):
            for step, (a, b) in enumerate(zip(self.losses("--device", "CUDA", FAKE_CUDA=machine), wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {machine}")

    def test_digits_train_as_on_the_cpu(self):
        def rows(device):
            return self.rows("train", "digits", "--device", device, "--steps", 3, "--batch", 2, "--test-images", 6)
        results = [rows("CUDA"), rows("CPU")]
        losses = [[r["loss"] for r in one if r["event"] == "step"] for one in results]
        for step, (a, b) in enumerate(zip(*losses, strict=True)):
            self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step}")
        self.assertEqual(len(losses[0]), 3)
        self.assertEqual(*(one[-1]["accuracy"] for one in results))

    def test_bringup_passes_or_names_the_step_that_fails(self):
        for machine, step in (("seed:3", None), ("fail:1", "find"), ("fail:40", "open"), ("fail:90", "signal")):
            result = self.run_program(TUFF, "bringup", "--device", "CUDA", "--json", FAKE_CUDA=machine)
            rows = [json.loads(line) for line in result.stdout.splitlines()]
            self.assertEqual(result.returncode, 1 if step else 0, rows)
            self.assertEqual([row["step"] for row in rows if row["status"] != "passed"], [step] if step else [], rows)
        self.assertIn("cu", rows[-1]["detail"])

    def test_two_gpus_in_one_graph(self):
        wanted, by_host = self.two_devices("CPU", "SHUFFLE")
        self.assertEqual(by_host, 2)
        for machine, by_host in (("gpus:2", 0), ("gpus:2,peers:0", 2)):
            loss, copies = self.two_devices("CUDA:0", "CUDA:1", FAKE_CUDA=machine)
            self.assertAlmostEqual(loss, wanted, delta=2e-4, msg=machine)
            self.assertEqual(copies, by_host, machine)

    def two_devices(self, *devices, **environment):
        """The loss of step 8, and how many copies of a step the host makes."""
        result = self.run_program(TWO_DEVICES, *devices, 8, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return (float(re.search(r"step 8: loss ([0-9.]+)", result.stdout)[1]),
                int(re.search(r"copies, ([0-9]+) of them by the host", result.stdout)[1]))


if __name__ == "__main__":
    TUFF, TWO_DEVICES, LIBRARY = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
