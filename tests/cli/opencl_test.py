#!/usr/bin/env python3
"""The program `tuff` on OpenCL: how devices are listed, trainings as on the CPU in both tiers of memory, and
kernels under Oclgrind, whose memory, race and API checks have to stay silent.

Usage: opencl_test.py PATH_OF_TUFF PATH_OF_POCL_ICD PATH_OF_OCLGRIND_RUNTIME [unittest options]
"""
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TUFF = POCL = OCLGRIND = None
TINY_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4"]
TIERS = ({}, {"TUFF_CL_DISABLE": "svm"}, {"TUFF_CL_DISABLE": "fine-svm"})
# Other queues than PoCL's usual one, which has no order.
QUEUES = ({"TUFF_CL_QUEUE": "in-order"}, {"TUFF_CL_COMMAND_BUFFER": "1"}, {"TUFF_CL_COPY_QUEUE": "1"},
          {"TUFF_CL_QUEUE": "in-order", "TUFF_CL_COMMAND_BUFFER": "1", "TUFF_CL_DISABLE": "svm"})
# Of every kind of case some; Oclgrind interprets one work-item after another.
SAMPLE = ("add/*,cast/*,reduce_add/*,where/*,Tensor.abs/*,Tensor.softmax/*,Tensor.matmul*/f32/*,"
          "Tensor.conv2d*/f32/*")
EVERY = 6
# And of all cases so many as the day's seed draws, 0.2 CPU-seconds each; 10000 are the whole suite.
RANDOM_CASES = int(os.environ.get("OCLGRIND_CASES", "300"))
SEED = int(os.environ.get("OCLGRIND_SEED", str(int(time.time()) // 86400)))
# One process of `tuff check` runs so many: another would open the same log, and empty it.
BATCH = 64


class Opencl(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=folder, timeout=900,
                                  check=False, env={**os.environ, "OCL_ICD_VENDORS": POCL, **environment})

    def rows(self, *arguments, returns=(0,), **environment):
        result = self.run_program(TUFF, *arguments, "--json", **environment)
        self.assertIn(result.returncode, returns, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_devices_are_listed_with_their_tier(self):
        for environment, tier in zip(TIERS, ("fine-svm", "buffers", "coarse-svm"), strict=True):
            device, = [r for r in self.rows("devices", **environment) if r["kind"] == "CL"]
            self.assertEqual((device["name"], device["usable"], device["software"]), ("CL:0", True, True))
            self.assertIn("Portable Computing Language", device["driver"])
            self.assertEqual(device["features"]["memory"], tier)

    def test_a_missing_driver_is_a_line_with_its_remedy(self):
        with tempfile.TemporaryDirectory() as nothing:
            row, = [r for r in self.rows("devices", OCL_ICD_VENDORS=nothing) if r["kind"] == "CL"]
        self.assertFalse(row["usable"])
        self.assertIn("pocl-opencl-icd", row["reason"])

    def test_every_platform_has_its_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "oclgrind.icd").write_text(OCLGRIND + "\n", encoding="utf-8")
            shutil.copy(POCL, folder)
            rows = [r for r in self.rows("devices", OCL_ICD_VENDORS=folder) if r["kind"] == "CL"]
            self.assertEqual(sorted(r["name"] for r in rows), ["CL:0", "CL:1"])
            self.assertEqual(len({r["driver"] for r in rows}), 2)
            # Each kernel is built by its own device's driver, in one process.
            both = self.rows("check", "--device", "CL:0,CL:1", "--filter", "add/f32/*", OCL_ICD_VENDORS=folder)
            self.assertEqual({(r["device"], r["verdict"]) for r in both}, {("CL:0", "pass"), ("CL:1", "pass")})

    def losses(self, *arguments, **environment):
        rows = self.rows("train", "gpt", *TINY_GPT, "--steps", 4, "--sample", 0, *arguments, **environment)
        return [r["loss"] for r in rows if r["event"] == "step"], rows[-1]["submits_per_step"]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted, _ = self.losses("--device", "CPU")
        for environment in TIERS:
            got, submits = self.losses("--device", "CL", **environment)
            self.assertEqual(submits, 2 if environment.get("TUFF_CL_DISABLE") == "svm" else 1)  # bound: copies first
            for step, (a, b) in enumerate(zip(got, wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {environment}")

    def test_every_kind_of_queue_trains_alike_bit_for_bit(self):
        # Memory of another tier has other kernels, which sum in another order.
        tiers = [{}, {"TUFF_CL_DISABLE": "svm"}]
        wanted = [self.losses("--device", "CL", **tier)[0] for tier in tiers]
        for environment in QUEUES:
            got, _ = self.losses("--device", "CL", **environment)
            self.assertEqual(got, wanted["TUFF_CL_DISABLE" in environment], environment)

    def test_a_sample_of_the_suite_on_every_kind_of_queue(self):
        cases = ",".join(self.listing("--filter", SAMPLE)[::EVERY])
        for environment in QUEUES:
            rows = self.rows("check", "--device", "CL", "--filter", cases, **environment)
            self.assertGreater(len(rows), 50)
            self.assertEqual({r["case"]: r["message"] for r in rows if not r["expected"]}, {}, environment)

    def test_a_trace_has_each_kernel_of_a_recorded_graph(self):
        def kernels(**environment):
            with tempfile.TemporaryDirectory() as folder:
                trace = pathlib.Path(folder, "trace.json")
                self.losses("--device", "CL", TUFF_PROFILE=str(trace), **environment)
                events = json.loads(trace.read_text(encoding="utf-8"))
            events = events["traceEvents"] if isinstance(events, dict) else events
            return sorted(e["name"] for e in events if e.get("cat") == "kernel")
        wanted = kernels()
        self.assertGreater(len(wanted), 100)
        self.assertEqual(kernels(TUFF_CL_COMMAND_BUFFER="1"), wanted)

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

    def listing(self, *arguments):
        return subprocess.run([TUFF, "check", "--list", *arguments], capture_output=True, text=True,
                              check=True).stdout.split()

    def under_oclgrind(self, cases, **environment):
        """The rows of `tuff check`, and what Oclgrind wrote, by batch."""
        with tempfile.TemporaryDirectory() as folder:
            icd = pathlib.Path(folder, "oclgrind.icd")
            icd.write_text(OCLGRIND + "\n", encoding="utf-8")

            def run(begin):
                log = pathlib.Path(folder, f"log{begin}")
                # What fails is told by its rows, of all batches together.
                rows = self.rows("check", "--device", "CL", "--jobs", 1, "--timeout", 600, "--filter",
                                 ",".join(cases[begin:begin + BATCH]), returns=(0, 1), OCL_ICD_VENDORS=str(icd),
                                 OCLGRIND_DATA_RACES="1", OCLGRIND_CHECK_API="1", OCLGRIND_LOG=str(log), **environment)
                # Opened by the first device: an absent one would say nothing.
                return rows, log.read_text(encoding="utf-8", errors="replace")
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                batches = list(pool.map(run, range(0, len(cases), BATCH)))
        return [row for rows, _ in batches for row in rows], [log for _, log in batches]

    def test_oclgrind_finds_nothing(self):
        everything = self.listing()
        drawn = random.Random(SEED).sample(everything, min(RANDOM_CASES, len(everything)))
        print(f"{len(drawn)} cases of seed {SEED} (OCLGRIND_SEED, OCLGRIND_CASES)", flush=True)
        cases = list(dict.fromkeys(self.listing("--filter", SAMPLE)[::EVERY] + drawn))
        rows, logs = self.under_oclgrind(cases)
        self.assertEqual(len(rows), len(cases))
        self.assertEqual({r["case"]: r["message"] for r in rows if not r["expected"]}, {})
        for log in logs:
            self.assertEqual(log[:4000], "")

    def test_what_oclgrind_says_reaches_the_logs(self):
        # Its check for values that were never written takes inputs for such: every batch has some.
        cases = [c for c in self.listing("--filter", "add/*,mul/*") if "empty" not in c]
        rows, logs = self.under_oclgrind(cases[:BATCH + 8], OCLGRIND_UNINITIALIZED="1")
        self.assertEqual({r["verdict"] for r in rows}, {"pass"})
        self.assertEqual(len(logs), 2)
        for log in logs:
            self.assertIn("Uninitialized value", log)


if __name__ == "__main__":
    TUFF, POCL, OCLGRIND = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
