#!/usr/bin/env python3
"""What Mesa's compiler newer than Debian 12's makes of tuff's kernels: dual issue and WMMA.

Usage: newer_mesa_test.py PATH_OF_TUFF PATH_OF_GPU_SHADER_TEST, with TUFF_RADV naming a folder of scripts/mesa
(`scripts/test mesa` does so)
"""
import json
import os
import subprocess
import sys
import unittest

TUFF = SHADERS = None


def run(*arguments, **environment):
    return subprocess.run([TUFF, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, **environment})


class NewerMesa(unittest.TestCase):
    def row(self, *arguments):
        result = run("gpu", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertTrue(all(row["right"] for row in rows))
        return rows[0]

    def test_multiply_adds_issue_in_pairs(self):
        row = self.row("matmul", "--sizes", 512)
        self.assertEqual(row["spills"], 0)
        self.assertGreater(2 * row["classes"]["dual"], 0.8 * 2 * 512**3 / 64)

    def test_products_of_halves_are_of_matrices(self):
        row = self.row("matmul", "--sizes", 256, "--dtype", "f16")
        self.assertEqual(row["classes"]["wmma"], 256**3 // 16**3)

    def test_products_are_right(self):
        result = run("check", "--device", "AMD", "--filter", "*matmul*", AMD_IFACE="MOCK", AMD_COMPILER="aco")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_other_peoples_shaders(self):
        result = subprocess.run([SHADERS], capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    TUFF, SHADERS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    if not os.path.isdir(os.environ.get("TUFF_RADV", "")):
        print("skipped: TUFF_RADV names no folder of scripts/mesa; `scripts/test mesa` runs this")
        sys.exit(77)
    unittest.main()
