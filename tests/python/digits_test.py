"""The digits network trained from Python, as the example does it, has the losses of
`tuff train digits`, bit for bit; without it being captured too. Usage: digits_test.py TUFF EXAMPLE"""
import importlib.util
import json
import subprocess
import sys
import unittest

STEPS = 12


def losses_of_program(*options):
    done = subprocess.run([sys.argv[1], "train", "digits", "--json", "--device", "CPU", "--steps",
                           str(STEPS), "--test-images", "0", *options],
                          capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line["loss"] for line in lines if line["event"] == "step"]


def example():
    spec = importlib.util.spec_from_file_location("train_digits", sys.argv[2])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Digits(unittest.TestCase):
    def test_losses_are_those_of_cpp(self):
        expected = losses_of_program()
        self.assertEqual(len(expected), STEPS)
        self.assertLess(expected[-1], expected[0])
        train_digits = example()
        self.assertEqual(train_digits.train(STEPS, device="CPU").losses, expected)
        self.assertEqual(train_digits.train(STEPS, device="CPU", jit=False).losses, expected)

    def test_another_seed(self):
        self.assertEqual(example().train(STEPS, device="CPU", seed=5).losses,
                         losses_of_program("--seed", "5"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
