"""Which of tinygrad's and PyTorch's names there are: tests/data/parity.json says of each that it is here,
what takes its place, or why it is missing, and this test that it says the truth.

tinygrad's names are the public methods and properties of its Tensor (a9069c17, 2026-08-22), PyTorch's
those that are typed most. Usage: parity_test.py PARITY_JSON"""
import json
import sys
import unittest

import tuff
import tuff.data
import tuff.nn
import tuff.optim

with open(sys.argv.pop(1), encoding="utf-8") as file:
    PARITY = json.load(file)


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


if __name__ == "__main__":
    unittest.main()
