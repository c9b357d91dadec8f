#!/usr/bin/env python3
"""The program `tuff` on emulated NVIDIA GPUs by direct submission (NV_IFACE=MOCK).

Usage: nv_test.py PATH_OF_TUFF [unittest options]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TUFF = None
TINY_GPT = ["--layers", 1, "--heads", 2, "--embed", 32, "--context", 16, "--batch", 4, "--steps", 4, "--sample", 0]
DIGITS = ["--steps", 3, "--batch", 2, "--test-images", 6]


class Nv(unittest.TestCase):
    def run_tuff(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([TUFF, *map(str, arguments)], capture_output=True, text=True, cwd=folder, timeout=600,
                                  check=False, env={**os.environ, "NV_IFACE": "MOCK", **environment})

    def rows(self, *arguments, **environment):
        result = self.run_tuff(*arguments, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_devices_are_listed_and_never_the_default(self):
        nv = [r for r in self.rows("devices", TUFF_MOCK="gpus:2,sm:90") if r["kind"] == "NV"]
        self.assertEqual([r["name"] for r in nv], ["NV:0", "NV:1"])
        self.assertEqual({(r["usable"], r["default"]) for r in nv}, {(True, False)})
        self.assertIn("simulated, never run", json.dumps(nv[0]))

    def test_without_a_driver_the_reason_names_the_remedy(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a driver")
        nv = [r for r in self.rows("devices", NV_IFACE="NVK") if r["kind"] == "NV"]
        self.assertEqual([r["usable"] for r in nv], [False])
        self.assertIn("/dev/nvidiactl", nv[0]["reason"])
        self.assertIn("nvidia-uvm", nv[0]["reason"])

    def test_by_pci_no_gpu_is_touched_that_is_not_named(self):
        for named, wanted in (("", "touches no GPU but the one that NV_PCI names"),
                              ("ff:1f.7", "/sys/bus/pci/devices/0000:ff:1f.7/vendor cannot be read"),
                              ("GPU-0", "NV_PCI='GPU-0' is not the address of a PCI function")):
            nv = [r for r in self.rows("devices", NV_IFACE="PCI", NV_PCI=named) if r["kind"] == "NV"]
            self.assertEqual([r["usable"] for r in nv], [False])
            self.assertIn(wanted, nv[0]["reason"])

    def test_unknown_options_are_named(self):
        for text in ("sm:75", "driver:610", "bar:1", "sm:120,driver:550"):
            result = self.run_tuff("check", "--device", "NV", TUFF_MOCK=text)
            self.assertIn("TUFF_MOCK", result.stderr, text)
            self.assertNotEqual(result.returncode, 0)

    def losses(self, model, device, *arguments, **environment):
        rows = self.rows("train", model, *arguments, "--device", device, TUFF_CHECK_HAZARDS="1", **environment)
        return [r["loss"] for r in rows if r["event"] == "step"], rows[-1]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted, _ = self.losses("gpt", "CPU", *TINY_GPT)
        for machine in ("sm:90,driver:580,seed:3", "sm:120,seed:5"):
            got, last = self.losses("gpt", "NV", *TINY_GPT, TUFF_MOCK=machine)
            self.assertEqual(last["submits_per_step"], 1)
            for step, (a, b) in enumerate(zip(got, wanted, strict=True)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step} with {machine}")

    def test_digits_train_as_on_the_cpu(self):
        (got, last), (wanted, on_cpu) = (self.losses("digits", device, *DIGITS) for device in ("NV", "CPU"))
        self.assertEqual(len(got), 3)
        for step, (a, b) in enumerate(zip(got, wanted, strict=True)):
            self.assertAlmostEqual(a, b, delta=1e-4, msg=f"step {step}")
        self.assertEqual(last["accuracy"], on_cpu["accuracy"])


if __name__ == "__main__":
    TUFF = sys.argv.pop(1)
    unittest.main()
