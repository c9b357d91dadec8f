#!/usr/bin/env python3
"""`tuff check` finds the faults that a Vulkan layer plants, gives each its verdict and exit code, and
leaves a folder that repeats it. Also the command itself: bad input, lists, Ctrl-C.

Usage: faults_test.py TUFF LAYER_FOLDER [unittest options]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TUFF = None
LAYER_FOLDER = None
OP_FMUL = "133"
OP_CONVERT_U_TO_F = "112"
CASES = "mul/f32/odd,add/f32/odd,mul/i32/odd"
VULKAN = None  # a usable Vulkan device, if there is one


def find_vulkan():
    listing = subprocess.run([TUFF, "devices", "--json"], capture_output=True, text=True, check=False).stdout
    rows = [json.loads(line) for line in listing.splitlines()]
    return next((r["name"] for r in rows if r["usable"] and r["kind"] == "VULKAN"), None)


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_")}
        self.env["TUFF_CACHE_DIR"] = str(self.folder / "cache")

    def check(self, *arguments, **env):
        return subprocess.run([TUFF, "check", *arguments], capture_output=True, text=True, timeout=120,
                              env={**self.env, **env}, check=False)

    def rows(self, result):
        return {row["case"]: row for row in map(json.loads, result.stdout.splitlines())}


class Faults(CheckTest):
    def setUp(self):
        super().setUp()
        if VULKAN is None:
            self.skipTest("no Vulkan device")
        # Verdicts of an honest driver, or the self-tests would find the fault before any case does.
        self.check("--device", VULKAN, "--filter", "add/f32/odd")

    def planted(self, fault, *arguments):
        layer = {"VK_LAYER_PATH": LAYER_FOLDER, "VK_INSTANCE_LAYERS": "VK_LAYER_TUFF_fault",
                 "TUFF_TEST_FAULT": fault, "TUFF_TEST_OPCODE": OP_FMUL}
        return self.check("--json", "--timeout", "4", *arguments, **layer)

    def expect_fault(self, fault, verdict):
        """The case with the opcode gets the verdict, the others pass; the folder repeats it."""
        out = self.folder / "out"
        result = self.planted(fault, "--device", VULKAN, "--filter", CASES, "--out", str(out))
        self.assertEqual(result.returncode, 1, result)
        rows = self.rows(result)
        self.assertEqual(len(rows), 3, result)
        guilty = rows.pop("mul/f32/odd")
        self.assertEqual(guilty["verdict"], verdict, guilty)
        self.assertFalse(guilty["expected"])
        for row in rows.values():
            self.assertEqual(row["verdict"], "pass", row)
        folder = pathlib.Path(guilty["reproducer"])
        self.assertEqual([folder], list(out.iterdir()))
        self.expect_folder(folder, verdict)
        again = self.planted(fault, "--replay", str(folder))
        self.assertEqual(again.returncode, 1, again)
        self.assertEqual(self.rows(again)["mul/f32/odd"]["verdict"], verdict, again)
        # Without the fault the same folder passes.
        healed = self.check("--json", "--replay", str(folder))
        self.assertEqual(healed.returncode, 0, healed)
        return guilty

    def expect_folder(self, folder, verdict):
        case = json.loads((folder / "case.json").read_text())
        self.assertEqual(case["verdict"], verdict)
        self.assertIn("tuff check --device", case["command"])
        self.assertEqual(case["left_out"], [])
        self.assertIn("mul f32", (folder / "graph.txt").read_text())
        self.assertEqual(json.loads((folder / "target.json").read_text())["renderer"], "spirv")
        names = {p.name for p in folder.iterdir()}
        self.assertLessEqual({"input_0.bin", "input_1.bin", "want_0.bin", "kernel_0.spv", "kernel_0.spvasm"}, names)
        self.assertEqual((folder / "want_0.bin").stat().st_size, 7 * 15 * 4)
        if verdict == "fail":
            self.assertNotEqual((folder / "got_0.bin").read_bytes(), (folder / "want_0.bin").read_bytes())

    def test_a_wrong_result_fails(self):
        row = self.expect_fault("flip", "fail")
        self.assertGreater(row["error_ulp"], row["budget_ulp"])

    def test_a_crash_is_found(self):
        self.assertIn("SIGABRT", self.expect_fault("crash", "crash")["message"])

    def test_a_hang_is_found(self):
        self.assertIn("no answer within 4 s", self.expect_fault("hang", "hang")["message"])

    def test_a_refused_pipeline_is_unsupported(self):
        self.assertIn("VK_ERROR_FEATURE_NOT_PRESENT", self.expect_fault("refuse", "unsupported")["message"])

    def expect_reduced(self, fault, kind):
        """Random graphs find the fault too, and a minimal graph repeats it."""
        out = self.folder / "out"
        result = self.planted(fault, "--device", VULKAN, "--random", "40", "--out", str(out))
        self.assertEqual(result.returncode, 1, result)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        verdicts = [row["verdict"] for row in rows if "verdict" in row]
        self.assertEqual(len(verdicts), 40)
        self.assertIn("pass", verdicts)
        self.assertEqual(set(verdicts) - {"pass"}, {kind})
        minimal = next(row for row in rows if "minimal_graph" in row)
        text = minimal["minimal_graph"]
        self.assertEqual(text, pathlib.Path(minimal["reproducer"]).read_text())
        self.assertLess(text.count("\n%"), 12, text)
        again = self.planted(fault, "--device", VULKAN, "--graph", minimal["reproducer"])
        self.assertNotEqual(again.returncode, 0, again)
        healed = self.check("--device", VULKAN, "--graph", minimal["reproducer"], TUFF_DEBUG="4")
        self.assertEqual((healed.returncode, healed.stdout), (0, ""), healed)
        self.assertIn("OpFMul", healed.stderr)  # as an op of the graph, or within one of its functions

    def test_random_graphs_find_a_wrong_result(self):
        self.expect_reduced("flip", "fail")

    def test_random_graphs_find_a_crash(self):
        self.expect_reduced("crash", "crash")

    def test_a_layer_without_a_fault_changes_nothing(self):
        result = self.planted("none", "--device", VULKAN, "--filter", CASES)
        self.assertEqual(result.returncode, 0, result)

    def test_a_driver_that_crashes_in_a_self_test_is_used_without(self):
        """One process ends in the self-test of u32 to f32; the next ones do without that conversion."""
        cache = self.folder / "self-tests"
        layer = {"VK_LAYER_PATH": LAYER_FOLDER, "VK_INSTANCE_LAYERS": "VK_LAYER_TUFF_fault",
                 "TUFF_TEST_FAULT": "crash", "TUFF_TEST_OPCODE": OP_CONVERT_U_TO_F,
                 "TUFF_CACHE_DIR": str(cache)}
        arguments = ("--json", "--device", VULKAN, "--filter", "cast/u32/to_f32_odd,cast/u32/to_f32_special")
        first = self.check(*arguments, **layer)
        self.assertNotEqual(first.returncode, 0, first)
        second = self.check(*arguments, **layer)
        self.assertEqual(second.returncode, 0, second)
        self.assertEqual([row["verdict"] for row in self.rows(second).values()], ["pass", "pass"], second)
        verdicts = "".join(path.read_text() for path in cache.glob("vulkan/self-tests-*.txt"))
        self.assertIn("exactU32ToF32 an earlier process ended during it", verdicts)
        listing = subprocess.run([TUFF, "devices", "--json"], capture_output=True, text=True, check=False,
                                 env={**self.env, **layer}).stdout
        device = next(r for r in map(json.loads, listing.splitlines()) if r["name"] == VULKAN)
        self.assertEqual(device["features"]["exactU32ToF32"], "failed self-test")

    def test_rows_name_the_driver(self):
        rows = self.rows(self.check("--json", "--device", VULKAN, "--filter", "add/f32/odd"))
        row = rows["add/f32/odd"]
        for key in ("device", "driver", "api_version", "uuid"):
            self.assertTrue(row[key], row)


class Command(CheckTest):
    def test_a_list_needs_no_device(self):
        names = self.check("--list", "--filter", "add/*/odd").stdout.split()
        self.assertIn("add/bf16/odd", names)
        self.assertEqual(len(names), 13)

    def test_usage_errors(self):
        for arguments in (["--filter", "no-such-op/*"], ["--jobs", "0"], ["--timeout", "-1"], ["--nonsense"],
                          ["--random", "0"], ["--random", "5", "--list"], ["--random", "5", "--graph", "x"]):
            self.assertEqual(self.check(*arguments).returncode, 2, arguments)

    def test_a_device_that_is_not_there(self):
        for name in ("VULKAN:77", "ABACUS", "VULKAN:name=nothing-like-it"):
            result = self.check("--device", name, "--filter", "add/f32/odd")
            self.assertEqual(result.returncode, 3, result)
            self.assertEqual(len(result.stderr.splitlines()), 1, result)

    def test_a_folder_that_is_none(self):
        result = self.check("--replay", str(self.folder / "nowhere"))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("case.json", result.stderr)

    def test_a_graph_that_is_none(self):
        result = self.check("--device", "NULL", "--graph", str(self.folder / "nowhere.graph"))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("nowhere.graph", result.stderr)
        (self.folder / "torn.graph").write_text("%0 = add f32")
        result = self.check("--device", "NULL", "--graph", str(self.folder / "torn.graph"))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("torn.graph", result.stderr)

    def test_null_computes_nothing_and_fails(self):
        """The device that computes nothing is the cheapest fault."""
        result = self.check("--device", "NULL", "--filter", "add/i32/odd")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("fail", result.stdout)

    def test_an_interrupt_ends_the_run(self):
        process = subprocess.Popen([TUFF, "check", "--device", "NULL", "--json"], env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)
        self.assertLess(time.monotonic() - begin, 20)


if __name__ == "__main__":
    TUFF, LAYER_FOLDER = sys.argv[1:3]
    VULKAN = find_vulkan()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
