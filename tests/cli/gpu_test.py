#!/usr/bin/env python3
"""`tuff gpu` as users run it, and the null device of Mesa's driver in `tuff devices`.

Usage: gpu_test.py PATH_OF_TUFF
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

TUFF = None
# What every row has, by the issue of those who read it with scripts.
KEYS = {"kernel", "waves", "vgprs", "spills", "lines", "least_lines", "dram_bytes", "time_us", "limit", "roofline",
        "right"}


class Gpu(unittest.TestCase):
    def run_program(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([TUFF, *map(str, arguments)], capture_output=True, text=True, cwd=folder, timeout=600,
                                  check=False, env={**os.environ, **environment})

    def rows(self, *arguments, **environment):
        result = self.run_program("gpu", *arguments, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def check_rows(self, rows):
        *kernels, total = rows
        self.assertGreater(len(kernels), 0)
        self.assertEqual(total["kernel"], "total")
        for row in kernels:
            self.assertLessEqual(KEYS, row.keys())
            self.assertTrue(row["right"])
            self.assertEqual(row["spills"], 0)
            self.assertGreaterEqual(row["lines"], row["least_lines"])
            self.assertGreater(row["time_us"], 0)
            self.assertTrue(0 < row["roofline"] <= 1, row["roofline"])
            self.assertEqual(sum(row["classes"].values()), row["instructions"])
        for key in ("waves", "lines", "time_us", "dram_bytes", "launches"):
            self.assertAlmostEqual(sum(row[key] for row in kernels), total[key], places=6)

    def test_a_copy_is_coalesced(self):
        for compiler in ("aco", "clang"):
            rows = self.rows("elementwise", "--sizes", 1 << 16, "--compiler", compiler)
            self.check_rows(rows)
            self.assertEqual(len(rows), 2)
            # Besides its loads and stores each wave reads the addresses of its arguments.
            self.assertGreaterEqual(rows[0]["bytes"], 2 * 4 << 16)
            self.assertLess(rows[0]["bytes"], 2.2 * (4 << 16))
            self.assertGreater(rows[0]["least_dram_bytes"], 0)

    def test_a_reduction_and_a_product(self):
        for work in (["softmax", "--sizes", "64x512"], ["matmul", "--sizes", "64"], ["gather", "--sizes", "100x64x50"]):
            self.check_rows(self.rows(*work))

    def test_reductions_touch_the_fewest_lines(self):
        for work in (["gemv", "--sizes", "512x1024"], ["gemv", "--sizes", "512x1024", "--dtype", "f16"],
                     ["row_sum", "--sizes", "512x1024"], ["column_sum", "--sizes", "1024x512"],
                     ["softmax", "--sizes", "256x1024"], ["layernorm", "--sizes", "256x1024"],
                     ["rmsnorm", "--sizes", "256x1024", "--dtype", "f16"]):
            rows = self.rows(*work)
            self.check_rows(rows)
            self.assertLess(rows[-1]["lines"], 1.1 * rows[-1]["least_lines"], work)

    def test_a_transpose_goes_through_workgroup_memory(self):
        for work in (["transpose", "--sizes", "512x768"], ["permute", "--sizes", "2x64x32x64"],
                     ["transpose", "--sizes", "512x768", "--dtype", "f16"]):
            rows = self.rows(*work)
            self.check_rows(rows)
            self.assertLess(rows[0]["lines"], 1.1 * rows[0]["least_lines"], work)
            self.assertGreater(rows[0]["lds_cycles"], 0)
            self.assertLess(rows[0]["lds_conflict_cycles"], 0.05 * rows[0]["lds_cycles"], work)

    def test_a_training_step(self):
        rows = self.rows("train", "mlp", "--chip", "780m")
        self.check_rows(rows)
        self.assertEqual({row.get("chip") for row in rows[:-1]}, {"780m"})

    def test_instructions_and_the_table(self):
        rows = self.rows("elementwise", "--sizes", 4096, "--instructions")
        instructions = rows[0]["instruction_rows"]
        self.assertEqual(sum(i["executed"] for i in instructions), rows[0]["instructions"])
        self.assertTrue(any("global_store" in i["text"] for i in instructions))
        result = self.run_program("gpu", "elementwise", "--sizes", 4096)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("right", result.stdout)

    def test_what_is_missing_or_wrong_is_named(self):
        result = self.run_program("gpu", "elementwise", "--sizes", 64, TUFF_RADV="/nowhere/radv.so")
        self.assertEqual(result.returncode, 1)
        self.assertIn("mesa-vulkan-drivers", result.stderr)
        result = self.run_program("gpu", "elementwise", "--sizes", 64, TUFF_ACO="/nowhere/tuff_aco")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/tuff_aco", result.stderr)
        result = self.run_program("gpu", "elementwise", "--sizes", 64, "--chip", "9999xyz")
        self.assertEqual(result.returncode, 1)
        self.assertIn("9999xyz", result.stderr)
        self.assertIn("7900xtx", result.stderr)
        for wrong in (["matmul", "--sizes", "3y"], ["train", "vgg"], ["elementwise", "--compiler", "gcc"], []):
            self.assertEqual(self.run_program("gpu", *wrong).returncode, 2, wrong)

    def test_chips_of_nvidia(self):
        for chip, work in (("h100", ["elementwise", "--sizes", 1 << 16]), ("h200", ["softmax", "--sizes", "64x512"]),
                           ("rtx4090", ["matmul", "--sizes", 64]), ("rtx3080", ["gemv", "--sizes", "512x1024"])):
            rows = self.rows(*work, "--chip", chip)
            self.check_rows(rows)
            self.assertEqual({row.get("chip") for row in rows[:-1]}, {chip})
            self.assertLess(rows[-1]["lines"], 1.1 * rows[-1]["least_lines"], work)
        rows = self.rows("matmul", "--sizes", 128, "--dtype", "f16", "--chip", "h100", "--instructions")
        self.check_rows(rows)
        self.assertEqual(rows[0]["classes"]["tensor"], 128**3 // (16 * 8 * 16))
        self.assertTrue(any(i["text"].startswith("mma.sync") for i in rows[0]["instruction_rows"]))

    def test_what_nvidias_chips_do_not_take_is_named(self):
        for wanted, wrong in (("by clang", ["elementwise", "--compiler", "aco", "--chip", "h100"]),
                              ("h100 is NVIDIA's", ["--spirv", "/dev/null", "--chip", "h100"]),
                              ("rtx3080", ["elementwise", "--chip", "rtx3090"])):
            result = self.run_program("gpu", *wrong)
            self.assertIn(result.returncode, (1, 2))
            self.assertIn(wanted, result.stderr)

    def test_registers_of_ptx_say_where_they_come_from(self):
        rows = self.rows("elementwise", "--sizes", 4096, "--chip", "h100", TUFF_PTXAS="/nowhere/ptxas")
        self.assertTrue(rows[0]["registers_estimated"])
        table = self.run_program("gpu", "elementwise", "--sizes", 4096, "--chip", "h100", TUFF_PTXAS="/nowhere/ptxas")
        self.assertIn(f" ~{rows[0]['vgprs']} ", table.stdout)

    def test_a_null_device_is_no_device(self):
        drivers = glob.glob("/usr/share/vulkan/icd.d/radeon_icd*.json")
        self.assertTrue(drivers, "install mesa-vulkan-drivers")
        result = self.run_program("devices", "--json", RADV_FORCE_FAMILY="gfx1100", VK_DRIVER_FILES=drivers[0],
                                  VK_ICD_FILENAMES=drivers[0])
        vulkan = [r for r in map(json.loads, result.stdout.splitlines()) if r["kind"] == "VULKAN"]
        self.assertEqual([(r["usable"], r["default"]) for r in vulkan], [(False, False)])
        self.assertIn("null device", vulkan[0]["reason"])


if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv.pop(1))
    unittest.main()
