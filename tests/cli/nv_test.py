#!/usr/bin/env python3
"""The program `tuff` on emulated NVIDIA GPUs by direct submission (NV_IFACE=MOCK).

Usage: nv_test.py PATH_OF_TUFF PATH_OF_TWO_DEVICES [unittest options]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TUFF = TWO_DEVICES = None
TINY_GPT = ["--layers", 1, "--heads", 2, "--embed", 32, "--context", 16, "--batch", 4, "--steps", 4, "--sample", 0]
DIGITS = ["--steps", 3, "--batch", 2, "--test-images", 6]


class Nv(unittest.TestCase):
    def run_tuff(self, *arguments, **environment):
        return self.run_program(TUFF, *arguments, **environment)

    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([*map(str, arguments)], capture_output=True, text=True, cwd=folder, timeout=600,
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

    def test_a_gpu_on_the_bus_is_listed_and_computes(self):
        nv = [r for r in self.rows("devices", TUFF_MOCK="pci:1,sm:90") if r["kind"] == "NV"]
        self.assertEqual([(r["name"], r["usable"], r["default"]) for r in nv], [("NV:0", True, False)])
        self.assertIn("0000:41:00.0", json.dumps(nv[0]))
        self.assertIn("simulated, never run", json.dumps(nv[0]))
        result = self.run_tuff("check", "--device", "NV", "--filter", "add/*,matmul*/f32/*,Tensor.layer_norm/f32/*",
                               TUFF_MOCK="pci:1,sm:86")
        self.assertIn("; 0 not as expected", result.stdout, result.stderr)
        self.assertEqual(result.returncode, 0)

    def test_unknown_options_are_named(self):
        for text in ("sm:75", "driver:610", "bar:1", "sm:120,driver:550", "pci:1,gpus:2", "pci:1,driver:535"):
            result = self.run_tuff("check", "--device", "NV", TUFF_MOCK=text)
            self.assertIn("TUFF_MOCK", result.stderr, text)
            self.assertNotEqual(result.returncode, 0)

    def bringup(self, *arguments, **environment):
        result = self.run_tuff("bringup", "--device", "NV", "--json", *arguments, **environment)
        return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]

    def test_bringup_walks_from_harmless_to_full(self):
        for machine in ("sm:86,seed:2", "sm:90,driver:535", "pci:1,sm:86", "sm:120,driver:570"):
            code, rows = self.bringup("--fault", TUFF_MOCK=machine)
            self.assertEqual(code, 0, rows)
            self.assertEqual([row["step"] for row in rows if row["status"] != "passed"], [], machine)
            self.assertEqual([rows[0]["step"], rows[-2]["step"], rows[-1]["step"]], ["machine", "suite", "fault"])
            self.assertIn("0x7ead00000000", rows[-1]["detail"])
        self.assertEqual(rows[0]["facts"]["environment"]["NV_IFACE"], "MOCK")
        self.assertEqual(rows[2]["facts"]["classes"], "c96f,c661,cec0,cab5")

    def test_bringup_stops_at_the_step_that_fails_and_names_it(self):
        for fault, step, wanted in (("fail:1", "find", "failed"), ("fail:30", "open", "failed"),
                                    ("stop:1", "open", "no progress for"), ("stop:50", "signal", "no progress for"),
                                    ("stop:120", "copy", "no progress for")):
            with tempfile.TemporaryDirectory() as folder:
                report = os.path.join(folder, "nv.jsonl")
                code, rows = self.bringup("--report", report, TUFF_MOCK=fault, TUFF_TIMEOUT_MS="1000")
                with open(report, encoding="utf-8") as file:
                    self.assertEqual([json.loads(line) for line in file], rows)
            self.assertEqual((code, rows[-1]["step"], rows[-1]["status"]), (1, step, "failed"), (fault, rows))
            self.assertIn(wanted, rows[-1]["detail"], fault)
            self.assertEqual({row["status"] for row in rows[:-1]}, {"passed"}, fault)

    def test_two_gpus_in_one_graph(self):
        for machine, by_host in (("gpus:2,sm:90", 0), ("gpus:2,seed:4,peers:2", 0), ("gpus:2,peers:0", 2)):
            result = self.run_program(TWO_DEVICES, "NV:0", "NV:1", 4, TUFF_MOCK=machine)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            copies = re.search(r"copies, ([0-9]+) of them by the host", result.stdout)[1]
            self.assertEqual(int(copies), by_host, machine)

    def losses(self, model, device, *arguments, **environment):
        rows = self.rows("train", model, *arguments, "--device", device, TUFF_CHECK_HAZARDS="1", **environment)
        return [r["loss"] for r in rows if r["event"] == "step"], rows[-1]

    def test_gpt_trains_as_on_the_cpu(self):
        wanted, _ = self.losses("gpt", "CPU", *TINY_GPT)
        for machine in ("sm:90,driver:580,seed:3", "sm:120,seed:5", "pci:1,sm:90"):
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
    TUFF, TWO_DEVICES = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
