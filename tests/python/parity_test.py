"""Which of tinygrad's and PyTorch's names there are: tests/data/parity.json says of each that it is here,
what takes its place, or why it is missing, and this test that it says the truth.

tinygrad's names are the public methods and properties of its Tensor (a9069c17, 2026-08-22), PyTorch's
those that are typed most. Of PyTorch's public functions, where it is installed, each one is here under
its name, or parity_torch.json says what takes its place or, by a pattern of names, why it is out.
Usage: parity_test.py PARITY_JSON PARITY_TORCH_JSON"""
import json
import re
import sys
import unittest

import tuff
import tuff.data
import tuff.nn
import tuff.optim

try:
    import torch
except ImportError:
    torch = None

with open(sys.argv.pop(1), encoding="utf-8") as file:
    PARITY = json.load(file)
with open(sys.argv.pop(1), encoding="utf-8") as file:
    ALL_OF_TORCH = json.load(file)


def find(name):
    """Whether the package, or its Tensor, has what a dotted name says."""
    for place in (tuff, tuff.Tensor):
        found = place
        for part in name.split("."):
            found = getattr(found, part, None)
            if found is None:
                break
        else:
            return True
    return False


class Parity(unittest.TestCase):
    def test_what_is_here(self):
        for library, lists in PARITY.items():
            for name in lists["here"]:
                self.assertTrue(find(name), f"{library}'s {name} is not in the package")

    def test_what_takes_a_place(self):
        for library, lists in PARITY.items():
            for name, ours in lists["renamed"].items():
                self.assertTrue(find(ours), f"{library}'s {name}: no {ours} in the package")

    def test_what_is_missing(self):
        for library, lists in PARITY.items():
            missing = lists["missing"] | lists.get("engine", {})
            for name, reason in missing.items():
                self.assertTrue(reason, name)
                self.assertFalse(find(name), f"{library}'s {name} is here now: move it to \"here\"")
            here = len(lists["here"]) + len(lists["renamed"])
            print(f"{library}: {here} of {here + len(lists['missing'])} names"
                  + (f", {len(lists['engine'])} more of its engine's own" if "engine" in lists else ""))

    def test_each_name_stands_once(self):
        for library, lists in PARITY.items():
            names = [name for part in lists.values() for name in part]
            self.assertEqual(len(names), len(set(names)), library)


def functions_of(place):
    """Public names that can be called and are no classes."""
    return {n for n in dir(place) if not n.startswith("_") and callable(getattr(place, n))
            and not isinstance(getattr(place, n), type)}


@unittest.skipIf(torch is None, "NO PYTORCH HERE (Debian: python3-torch): its public functions are not compared")
class AllOfTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.places = [(torch, tuff), (torch.Tensor, tuff.Tensor), (torch.nn.functional, tuff.nn.functional),
                      (torch.linalg, tuff.linalg), (torch.special, tuff.special)]

    def where(self, name, ours):
        """"here", the pattern or name that answers for it, or None."""
        renamed = ALL_OF_TORCH["renamed"]
        # Functions in place are methods here; what copies is the view's function and clone().
        if hasattr(ours, name) or name.endswith("_") and hasattr(tuff.Tensor, name):
            return "here"
        if name in renamed:
            return name
        if name.endswith("_copy") and find(name.removesuffix("_copy")):
            return "here"
        return next((p for p, _ in ALL_OF_TORCH["out"] if re.fullmatch(p, name)), None)

    def test_each_public_function(self):
        answers = {}
        for theirs, ours in self.places:
            for name in functions_of(theirs):
                answer = answers[theirs.__name__, name] = self.where(name, ours)
                self.assertTrue(answer, f"{theirs.__name__}.{name}: neither here, nor renamed, nor out")
        here = sum(a == "here" for a in answers.values())
        renamed = sum(a in ALL_OF_TORCH["renamed"] for a in answers.values())
        print(f"all of PyTorch {torch.__version__}: {here} of {len(answers)} names here, {renamed} under another name, "
              f"{len(answers) - here - renamed} out")

    def test_no_answer_is_left_over(self):
        asked = {self.where(n, ours) for theirs, ours in self.places for n in functions_of(theirs)}
        if torch.__version__.startswith("1.13"):  # the lists are of its names
            self.assertEqual(set(ALL_OF_TORCH["renamed"]) - asked, set())
            self.assertEqual({p for p, _ in ALL_OF_TORCH["out"]} - asked, set())

    def test_what_takes_a_place(self):
        for name, ours in ALL_OF_TORCH["renamed"].items():
            self.assertTrue(find(ours), f"{name}: no {ours} in the package")
        for pattern, reason in ALL_OF_TORCH["out"]:
            self.assertTrue(reason, pattern)


if __name__ == "__main__":
    unittest.main()
