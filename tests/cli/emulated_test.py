#!/usr/bin/env python3
"""The program `tuff` on emulated AMD GPUs: trainings as on the CPU, two GPUs, faults of the machine.

Usage: emulated_test.py PATH_OF_TUFF PATH_OF_TWO_DEVICES [unittest options]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TUFF = TWO_DEVICES = None
TINY_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4"]


class Emulated(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=folder, timeout=600,
                                  check=False, env={**os.environ, "AMD_IFACE": "MOCK", **environment})

    def rows(self, *arguments, **environment):
        result = self.run_program(TUFF, *arguments, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def bringup(self, **environment):
        result = self.run_program(TUFF, "bringup", "--device", "AMD", "--json", **environment)
        return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]

    def test_devices_are_listed_as_emulated(self):
        amd = [r for r in self.rows("devices", TUFF_MOCK="gpus:3") if r["kind"] == "AMD"]
        self.assertEqual([r["name"] for r in amd], ["AMD:0", "AMD:1", "AMD:2"])
        self.assertEqual({(r["usable"], r["software"], r["default"]) for r in amd}, {(True, True, False)})
        self.assertIn("emulated", amd[0]["description"])

    def test_without_the_library_the_reason_names_it(self):
        gone = {"TUFF_EMULATOR": "/nonexistent/libtuff_emulator.so"}
        amd = [r for r in self.rows("devices", **gone) if r["kind"] == "AMD"]
        self.assertEqual([r["usable"] for r in amd], [False])
        self.assertIn("TUFF_EMULATOR='/nonexistent/libtuff_emulator.so'", amd[0]["reason"])
        for arguments in (["train", "gpt", "--device", "AMD", "--steps", 1],
                          ["emu", "run", "k.co", "--kernel", "k", "--args", "a"]):
            result = self.run_program(TUFF, *arguments, **gone)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("there is no such file", result.stderr)

    def test_what_is_no_emulator_is_refused(self):
        result = self.run_program(TUFF, "train", "gpt", "--device", "AMD", "--steps", 1, TUFF_EMULATOR=TUFF)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"{TUFF}: cannot dynamically load", result.stderr)

    def losses(self, *arguments, **environment):
        rows = self.rows("train", "gpt", *TINY_GPT, "--steps", 4, "--sample", 0, *arguments, **environment)
        self.assertEqual(rows[-1]["submits_per_step"], 1)
        return [r["loss"] for r in rows if r["event"] == "step"]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted = self.losses("--device", "CPU")
        for environment in ({}, {"AMD_AQL": "1"}, {"TUFF_MOCK": "seed:3,bar:0"}, {"AMD_COMPILER": "aco"}):
            for step, (a, b) in enumerate(zip(self.losses("--device", "AMD", **environment), wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {environment}")

    def test_digits_train_as_on_the_cpu(self):
        def rows(device):
            return self.rows("train", "digits", "--device", device, "--steps", 3, "--batch", 2, "--test-images", 6)
        results = [rows("AMD"), rows("CPU")]
        losses = [[r["loss"] for r in one if r["event"] == "step"] for one in results]
        for step, (a, b) in enumerate(zip(*losses, strict=True)):
            self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step}")
        self.assertEqual(len(losses[0]), 3)
        done = [one[-1] for one in results]
        self.assertEqual([d["tested_images"] for d in done], [6, 6])
        self.assertEqual(*(d["accuracy"] for d in done))

    def test_two_gpus_in_one_graph(self):
        wanted, by_host = self.two_devices("CPU", "SHUFFLE")
        self.assertEqual(by_host, 2)
        for machine, by_host in (("gpus:2", 0), ("gpus:2,seed:4", 0), ("gpus:2,bar:0", 2)):
            loss, copies = self.two_devices("AMD:0", "AMD:1", TUFF_MOCK=machine)
            self.assertAlmostEqual(loss, wanted, delta=2e-4, msg=machine)
            self.assertEqual(copies, by_host, machine)

    def two_devices(self, *devices, **environment):
        """The loss of step 8, and how many copies of a step the host makes."""
        result = self.run_program(TWO_DEVICES, *devices, 8, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return (float(re.search(r"step 8: loss ([0-9.]+)", result.stdout)[1]),
                int(re.search(r"copies, ([0-9]+) of them by the host", result.stdout)[1]))

    def test_a_fault_on_purpose_is_told_with_its_address(self):
        result = self.run_program(TUFF, "bringup", "--device", "AMD", "--fault", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("0x7ead00000000", json.loads(result.stdout.splitlines()[-1])["detail"])

    def test_what_goes_wrong_is_told_and_ends(self):
        # A step of a seed is the same one each time; beside threads a fault may be noticed later.
        for fault, step, wanted in (("stop:30", "timestamp", "no progress for"), ("ecc:30,seed:1", "signal", "ECC"),
                                    ("reset:30,seed:1", "signal", "reset of the whole GPU"),
                                    ("enomem:7", "open", "Cannot allocate memory")):
            code, rows = self.bringup(TUFF_MOCK=fault, TUFF_TIMEOUT_MS="2000")
            self.assertEqual(code, 1, rows)
            self.assertEqual((rows[-1]["step"], rows[-1]["status"]), (step, "failed"), fault)
            self.assertIn(wanted, rows[-1]["detail"], fault)

    def test_a_lost_interrupt_costs_nothing_but_time(self):
        for count in (1, 2, 5):
            code, rows = self.bringup(TUFF_MOCK=f"lost_interrupt:{count}")
            self.assertEqual((code, rows[-1]["step"]), (0, "suite"), rows)

    def test_wrong_settings_are_named(self):
        for name, value in (("TUFF_MOCK", "gpus:x"), ("TUFF_MOCK", "lunch:1")):
            code, rows = self.bringup(**{name: value})
            self.assertEqual((code, rows[-1]["step"]), (1, "find"), rows)
            self.assertIn(name, rows[-1]["detail"])
            self.assertIn(value.split(":")[0], rows[-1]["detail"])
        result = self.run_program(TUFF, "bringup", "--device", "AMD", "--json", AMD_IFACE="XYZ")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("AMD_IFACE", result.stderr)
        self.assertIn("XYZ", result.stderr)


if __name__ == "__main__":
    TUFF, TWO_DEVICES = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
