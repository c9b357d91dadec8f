#!/usr/bin/env python3
"""Whether trainings learn what they should, against PyTorch where it was measured.

Usage: training_test.py PATH_OF_TUFF PATH_OF_TESTS_DATA [unittest options]
Runs on the CPU device in full, on the default Vulkan device for the first steps.
"""
import json
import os
import pathlib
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


class TrainingTest(unittest.TestCase):
    def device(self, kind):
        for row in tuff("devices"):
            if row["kind"] == kind and row["usable"]:
                return row["name"]
        self.skipTest(f"{kind} cannot be used here")

    def reference(self, name):
        return json.loads((DATA / name).read_text(encoding="ascii"))


class Gpt(TrainingTest):
    def test_validation_loss_as_pytorch(self):
        reference = self.reference("gpt_reference.json")
        rows = tuff("train", "gpt", "--device", self.device("CPU"), "--sample", 0)
        self.assertEqual(rows[-1]["corpus_hash"], reference["corpus_xxh64"])
        mine = [[r["step"], r["val_loss"]] for r in rows if r["event"] == "validation"]
        self.assertEqual([step for step, _ in mine], [step for step, _ in reference["validation_loss"]])
        for (step, loss), (_, wanted) in zip(mine, reference["validation_loss"]):
            self.assertAlmostEqual(loss, wanted, delta=0.02, msg=f"after step {step}")

    def test_first_steps_on_vulkan(self):
        # The learning rate of the first 20 steps does not depend on how many there are.
        reference = self.reference("gpt_reference.json")
        rows = tuff("train", "gpt", "--device", self.device("VULKAN"), "--sample", 0, "--steps", 6)
        losses = [r["loss"] for r in rows if r["event"] == "step"]
        for mine, wanted in zip(losses, reference["train_loss"]):
            self.assertAlmostEqual(mine, wanted, delta=0.001)

    def test_without_jit_the_same(self):
        arguments = ("train", "gpt", "--device", self.device("CPU"), "--steps", 5, "--sample", 0)
        replayed, built = tuff(*arguments), tuff(*arguments, "--no-jit")
        self.assertEqual([r["loss"] for r in replayed if r["event"] == "step"],
                         [r["loss"] for r in built if r["event"] == "step"])


class Digits(TrainingTest):
    def test_first_steps_as_pytorch(self):
        reference = self.reference("digits_reference.json")
        rows = tuff("train", "digits", "--device", self.device("CPU"), "--steps", reference["steps"])
        losses = [r["loss"] for r in rows if r["event"] == "step"]
        for mine, wanted in zip(losses, reference["train_loss"]):
            self.assertAlmostEqual(mine, wanted, delta=0.005)

    def test_accuracy(self):
        done = tuff("train", "digits", "--device", self.device("CPU"))[-1]
        self.assertGreaterEqual(done["accuracy"], 0.98)
        self.assertLess(done["softmax_regression_accuracy"], 0.92)


class Copy(TrainingTest):
    def test_attention_copies(self):
        self.assertGreaterEqual(tuff("train", "copy", "--device", self.device("CPU"))[-1]["accuracy"], 0.99)

    def test_without_attention_nothing_is_copied(self):
        done = tuff("train", "copy", "--device", self.device("CPU"), "--mask-attention")[-1]
        self.assertLess(done["accuracy"], 0.10)  # chance is 1/32
        self.assertGreater(done["train_loss"], 3.3)  # of ln 32 = 3.466


if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv.pop(1))
    DATA = pathlib.Path(sys.argv.pop(1))
    unittest.main()
