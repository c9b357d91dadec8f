#!/usr/bin/env python3
"""Whether trainings learn what they should, against PyTorch where it was measured.

Usage: training_test.py PATH_OF_TUFF PATH_OF_TESTS_DATA [unittest options]
Runs on the CPU device and on the first Vulkan device.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

TUFF = DATA = None


def tuff(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([TUFF, *map(str, arguments), "--json"], capture_output=True, text=True, cwd=folder,
                                timeout=1500, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{arguments}: {result.returncode} {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def interrupted(steps, *arguments):
    """As tuff(), ended by Ctrl-C after so many steps: those of the whole training's learning rates."""
    with tempfile.TemporaryDirectory() as folder, \
         subprocess.Popen([TUFF, *map(str, arguments), "--json"], stdout=subprocess.PIPE, text=True, cwd=folder) as run:
        rows = []
        for line in run.stdout:
            rows.append(json.loads(line))
            if rows[-1]["event"] == "step" and rows[-1]["step"] == steps:
                run.send_signal(signal.SIGINT)
    if run.returncode != 128 + signal.SIGINT:
        raise AssertionError(f"{arguments}: {run.returncode}")
    return rows


class TrainingTest(unittest.TestCase):
    def row(self, kind):
        for row in tuff("devices"):
            if row["kind"] == kind and row["usable"]:
                return row
        return self.skipTest(f"{kind} cannot be used here")

    def device(self, kind):
        return self.row(kind)["name"]

    def reference(self, name):
        return json.loads((DATA / name).read_text(encoding="ascii"))


class Gpt(TrainingTest):
    """The default training against PyTorch's curve from the same start; its first steps on a Vulkan driver in
    software, which runs kernels made for hardware. scripts/gpu-check has all of it."""

    SOFTWARE_STEPS = 10
    curves = {}

    def curve(self, kind):
        if kind not in self.curves:
            row = self.row(kind)
            arguments = ("train", "gpt", "--device", row["name"], "--sample", 0)
            software = row["kind"] == "VULKAN" and row["software"]
            self.curves[kind] = interrupted(self.SOFTWARE_STEPS, *arguments) if software else tuff(*arguments)
        return self.curves[kind]

    def losses(self, kind):
        return [r["loss"] for r in self.curve(kind) if r["event"] == "step"]

    def check_against_pytorch(self, kind):
        reference = self.reference("gpt_reference.json")
        rows = self.curve(kind)
        self.assertEqual(rows[-1]["corpus_hash"], reference["corpus_xxh64"])
        self.assertEqual(rows[-1]["submits_per_step"], 1)
        losses = self.losses(kind)
        self.assertGreaterEqual(len(losses), self.SOFTWARE_STEPS)
        for step, (mine, wanted) in enumerate(zip(losses, reference["train_loss"])):
            self.assertAlmostEqual(mine, wanted, delta=0.02, msg=f"step {step}")
        wanted = {step: loss for step, loss in reference["validation_loss"] if step <= len(losses)}
        mine = {r["step"]: r["val_loss"] for r in rows if r["event"] == "validation" if r["step"] in wanted}
        self.assertEqual(mine.keys(), wanted.keys())
        for step, loss in mine.items():
            self.assertAlmostEqual(loss, wanted[step], delta=0.02, msg=f"after step {step}")

    def test_cpu_as_pytorch(self):
        self.check_against_pytorch("CPU")
        self.assertEqual(len(self.losses("CPU")), len(self.reference("gpt_reference.json")["train_loss"]))

    def test_vulkan_as_pytorch(self):
        self.check_against_pytorch("VULKAN")

    def test_devices_agree_at_first(self):
        first = slice(self.SOFTWARE_STEPS)
        for step, (a, b) in enumerate(zip(self.losses("CPU")[first], self.losses("VULKAN")[first], strict=True)):
            self.assertAlmostEqual(a, b, delta=0.001, msg=f"step {step}")

    def test_without_jit_the_same(self):
        arguments = ("train", "gpt", "--device", self.device("CPU"), "--steps", 5, "--sample", 0)
        replayed, built = tuff(*arguments), tuff(*arguments, "--no-jit")
        self.assertEqual([r["loss"] for r in replayed if r["event"] == "step"],
                         [r["loss"] for r in built if r["event"] == "step"])


class Digits(TrainingTest):
    def check_first_steps(self, kind):
        reference = self.reference("digits_reference.json")
        rows = tuff("train", "digits", "--device", self.device(kind), "--steps", reference["steps"])
        losses = [r["loss"] for r in rows if r["event"] == "step"]
        self.assertEqual(len(losses), reference["steps"])
        for mine, wanted in zip(losses, reference["train_loss"]):
            self.assertAlmostEqual(mine, wanted, delta=0.005)
        self.assertAlmostEqual(rows[-1]["accuracy"], reference["test_accuracy"], delta=0.02)

    def test_first_steps_on_cpu(self):
        self.check_first_steps("CPU")

    def test_first_steps_on_vulkan(self):
        self.check_first_steps("VULKAN")

    def check_accuracy(self, kind):
        done = tuff("train", "digits", "--device", self.device(kind), "--steps", 250)[-1]
        self.assertGreaterEqual(done["accuracy"], 0.98)
        self.assertLess(done["softmax_regression_accuracy"], 0.92)

    def test_accuracy_on_cpu(self):
        self.check_accuracy("CPU")

    def test_accuracy_on_vulkan(self):
        if self.row("VULKAN")["software"]:
            self.skipTest("half a minute on hardware, minutes on a driver in software: its first steps are compared")
        self.check_accuracy("VULKAN")


class Validation(TrainingTest):
    """A training under the Khronos validation layers prints nothing on stderr but its progress."""

    def check_silent(self, *arguments):
        device = self.device("VULKAN")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([TUFF, "train", *arguments, "--device", device, "--steps", "4", "--json"],
                                    capture_output=True, text=True, cwd=folder, timeout=600, check=False,
                                    env={**os.environ, "TUFF_VK_VALIDATION": "1"})
        said = [line for line in result.stderr.splitlines() if not line.endswith(" ms/step")]
        self.assertEqual((result.returncode, said), (0, []))

    def test_gpt(self):
        self.check_silent("gpt", "--layers", "1", "--sample", "2")

    def test_digits(self):
        self.check_silent("digits", "--test-images", "64")


class Copy(TrainingTest):
    def test_attention_copies(self):
        done = tuff("train", "copy", "--device", self.device("CPU"))[-1]
        self.assertGreaterEqual(done["accuracy"], 0.99)
        self.assertLess(done["train_loss"], 0.1)  # over the second half

    def test_without_attention_nothing_is_copied(self):
        done = tuff("train", "copy", "--device", self.device("CPU"), "--mask-attention")[-1]
        self.assertLess(done["accuracy"], 0.10)  # chance is 1/32
        self.assertGreater(done["train_loss"], 3.3)  # of ln 32 = 3.466


if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv.pop(1))
    DATA = pathlib.Path(sys.argv.pop(1))
    unittest.main()
