#!/usr/bin/env python3
"""The program `tuff` on OpenCL: how devices are listed, trainings as on the CPU in both tiers of memory, and
kernels under Oclgrind, whose memory, race and API checks have to stay silent.

Usage: opencl_test.py PATH_OF_TUFF PATH_OF_POCL_ICD PATH_OF_OCLGRIND_RUNTIME [unittest options]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TUFF = POCL = OCLGRIND = None
TINY_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4"]
TIERS = ({}, {"TUFF_CL_DISABLE": "svm"})
# Of every kind of case some; Oclgrind interprets one work-item after another.
SAMPLE = "add/*,cast/*,reduce_add/*,where/*,Tensor.softmax/*,Tensor.matmul*/f32/*,Tensor.conv2d*/f32/*"
EVERY = 6


class Opencl(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=folder, timeout=900,
                                  check=False, env={**os.environ, "OCL_ICD_VENDORS": POCL, **environment})

    def rows(self, *arguments, **environment):
        result = self.run_program(TUFF, *arguments, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_devices_are_listed_with_their_tier(self):
        for environment, tier in zip(TIERS, ("fine-svm", "buffers"), strict=True):
            device, = [r for r in self.rows("devices", **environment) if r["kind"] == "CL"]
            self.assertEqual((device["name"], device["usable"], device["software"]), ("CL:0", True, True))
            self.assertIn("Portable Computing Language", device["driver"])
            self.assertEqual(device["features"]["memory"], tier)

    def test_a_missing_driver_is_a_line_with_its_remedy(self):
        with tempfile.TemporaryDirectory() as nothing:
            row, = [r for r in self.rows("devices", OCL_ICD_VENDORS=nothing) if r["kind"] == "CL"]
        self.assertFalse(row["usable"])
        self.assertIn("pocl-opencl-icd", row["reason"])

    def losses(self, *arguments, **environment):
        rows = self.rows("train", "gpt", *TINY_GPT, "--steps", 4, "--sample", 0, *arguments, **environment)
        return [r["loss"] for r in rows if r["event"] == "step"], rows[-1]["submits_per_step"]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted, _ = self.losses("--device", "CPU")
        for environment in TIERS:
            got, submits = self.losses("--device", "CL", **environment)
            self.assertEqual(submits, 2 if environment else 1)  # bound memory: what changes is copied first
            for step, (a, b) in enumerate(zip(got, wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {environment}")

    def test_digits_train_as_on_the_cpu(self):
        def losses(device, **environment):
            rows = self.rows("train", "digits", "--device", device, "--steps", 3, "--batch", 8, "--test-images", 6,
                             **environment)
            return [r["loss"] for r in rows if r["event"] == "step"]
        wanted = losses("CPU")
        self.assertEqual(len(wanted), 3)
        for environment in TIERS:
            for step, (a, b) in enumerate(zip(losses("CL", **environment), wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {environment}")

    def test_oclgrind_finds_nothing(self):
        listing = subprocess.run([TUFF, "check", "--list", "--filter", SAMPLE], capture_output=True, text=True,
                                 check=True).stdout.split()
        with tempfile.TemporaryDirectory() as folder:
            icd, log = pathlib.Path(folder, "oclgrind.icd"), pathlib.Path(folder, "log")
            icd.write_text(OCLGRIND + "\n", encoding="utf-8")
            rows = self.rows("check", "--device", "CL", "--filter", ",".join(listing[::EVERY]), OCL_ICD_VENDORS=str(icd),
                             OCLGRIND_DATA_RACES="1", OCLGRIND_CHECK_API="1", OCLGRIND_LOG=str(log))
            self.assertGreater(len(rows), 100)
            self.assertEqual({r["verdict"] for r in rows}, {"pass"})
            # Opened by the first device: an absent one would say nothing.
            self.assertEqual(log.read_text(encoding="utf-8")[:4000], "")


if __name__ == "__main__":
    TUFF, POCL, OCLGRIND = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
