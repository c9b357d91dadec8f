#!/usr/bin/env python3
"""Programs and the libraries up to io have no symbol of the emulator: it is a library of its own, which is opened.

Usage: symbols_test.py BUILD_DIR EMULATOR PROGRAM ...
"""
import pathlib
import subprocess
import sys
import unittest

ROOMS = ["base", "ir", "sched", "kernel", "render", "hcq", "devices", "engine", "tensor", "nn", "io"]


def symbols(path):
    result = subprocess.run(["nm", "-C", str(path)], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def of_emulator(path):
    return [line for line in symbols(path) if "tuff::emu::" in line]


class Symbols(unittest.TestCase):
    def test_the_emulator_has_them(self):
        self.assertGreater(len(of_emulator(EMULATOR)), 100)

    def test_libraries_have_none(self):
        for room in ROOMS:
            library = BUILD / f"src/{room}/libtuff_{room}.a"
            self.assertTrue(library.exists(), library)
            self.assertEqual(of_emulator(library), [], library)

    def test_programs_have_none(self):
        for program in PROGRAMS:
            self.assertGreater(len(symbols(program)), 100, f"{program} is stripped")
            self.assertEqual(of_emulator(program), [], program)

    def test_it_exports_one_function(self):
        result = subprocess.run(["nm", "-D", "--defined-only", str(EMULATOR)], capture_output=True, text=True, check=True)
        names = {line.split()[-1] for line in result.stdout.splitlines()}
        self.assertIn("tuff_emulator_api", names)
        self.assertEqual({n for n in names if "tuff" in n}, {"tuff_emulator_api"})


if __name__ == "__main__":
    BUILD, EMULATOR = map(pathlib.Path, sys.argv[1:3])
    PROGRAMS = sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
