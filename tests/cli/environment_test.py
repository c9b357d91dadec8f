#!/usr/bin/env python3
"""Every variable of `tuff docs env` with values that it does not take, and names that there are not.

Usage: environment_test.py PATH_OF_TUFF [unittest options]
What is asked for and cannot be done is one line that names variable and value, before any work.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TUFF = None
HUGE = "9" * 30
TRAIN = ["train", "gpt", "--steps", "1", "--layers", "1", "--heads", "1", "--embed", "8", "--context", "8", "--batch", "1",
         "--sample", "0", "--json", "--save", "m.safetensors", "--device"]


def on(device):
    return [*TRAIN, device]


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TUFF_", "AMD_", "NV_"))}
        self.env["TUFF_CACHE_DIR"] = str(self.folder / "cache")

    def tuff(self, code, *arguments, **env):
        result = subprocess.run([TUFF, *map(str, arguments)], capture_output=True, cwd=self.folder, timeout=300,
                                env={**self.env, **env}, check=False)
        said = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, (arguments, env, said))
        return result.stdout.decode(), said.splitlines()

    def refused(self, name, value, *arguments, **env):
        """Exit code 1, one line with the name and the value, and nothing was done."""
        out, said = self.tuff(1, *arguments, **{**env, name: value})
        self.assertEqual((out, len(said)), ("", 1), (name, value, said))
        self.assertTrue(said[0].startswith("tuff: " + name), said)
        self.assertIn(value[:60], said[0])
        self.assertLess(len(said[0]), 1100)
        self.assertFalse((self.folder / "m.safetensors").exists())
        return said[0]

    def warned(self, name, value, wanted, *arguments, **env):
        _, said = self.tuff(0, *arguments, **{**env, name: value})
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].startswith("[tuff warn] "), said)
        for part in (name, wanted):
            self.assertIn(part, said[0])

    def rows(self):
        table = self.tuff(0, "docs", "env")[0]
        return re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| ", table, re.M)

    def usable(self, kind):
        rows = [json.loads(line) for line in self.tuff(0, "devices", "--json", TUFF_DEVICE="NULL")[0].splitlines()]
        return any(row["usable"] for row in rows if row["kind"] == kind)


class Values(EnvironmentTest):
    def test_kinds(self):
        for name, _, allowed in self.rows():
            bad = ["garbage", "0x10", " 1", HUGE, "-" + HUGE] if allowed else []
            if re.search(r"integer from \d", allowed):
                bad += ["-1", "1.5", "9999999999999"]
            for value in bad:
                line = self.refused(name, value, *on("NULL"))
                self.assertIn(f"{name}='{value}' is not {allowed}; ", line)
            if allowed:
                self.refused(name, "x" * 100000, "devices")

    def test_empty_is_the_default(self):
        for name, _, _ in self.rows():
            if name != "TUFF_CACHE_DIR":  # whose default is the user's
                self.assertEqual(self.tuff(0, *on("NULL"), **{name: ""})[1], [], name)

    def test_what_is_allowed_is_taken(self):
        for name, _, allowed in self.rows():
            taken = re.split(", | or ", allowed) if allowed and "integer" not in allowed else re.findall(r"\d+$", allowed)
            # A search of the greatest width takes a minute.
            command = ["devices"] if name == "TUFF_BEAM" else on("NULL")
            for value in taken:
                if name not in ("TUFF_DEBUG", "TUFF_LOG", "TUFF_IO"):  # say something, or are the machine's
                    said = self.tuff(0, *command, **{name: value})[1]
                    complaints = [line for line in said if not line.startswith("gpt: step ")]  # shown if it takes long
                    self.assertEqual(complaints, [], (name, value))

    def test_the_table_is_shown_whatever_is_set(self):
        for name, _, allowed in self.rows():
            if allowed:
                self.tuff(0, "docs", "env", **{name: "garbage"})
                self.tuff(0, "--help", **{name: "garbage"})


class Texts(EnvironmentTest):
    """Variables whose values mean something to one part alone, which checks them when it is used."""
    # name: arguments, other variables, what is needed
    REFUSED = {
        "TUFF_DEVICE": (on("NULL")[:-2], {}, "NULL"),
        "TUFF_CC": (on("CPU"), {}, "NULL"),
        "TUFF_CLANG": (on("AMD"), {"AMD_IFACE": "MOCK"}, "NULL"),
        "TUFF_EMULATOR": (on("AMD"), {"AMD_IFACE": "MOCK"}, "NULL"),
        "TUFF_ACO": (on("AMD"), {"AMD_IFACE": "MOCK", "AMD_COMPILER": "aco"}, "NULL"),
        "TUFF_RADV": (on("AMD"), {"AMD_IFACE": "MOCK", "AMD_COMPILER": "aco"}, "NULL"),
        "TUFF_CUDA_LIBRARY": (on("CUDA"), {}, "NULL"),
        "AMD_PCI": (on("AMD"), {"AMD_IFACE": "PCI"}, "NULL"),
        "NV_PCI": (on("NV"), {"NV_IFACE": "PCI"}, "NULL"),
        "TUFF_VK_DISABLE": (on("VULKAN"), {}, "VULKAN"),
        "TUFF_VK_LIMIT": (on("VULKAN"), {}, "VULKAN"),
        "TUFF_CL_DISABLE": (on("CL"), {}, "CL"),
        "TUFF_MOCK": (["devices"], {"AMD_IFACE": "MOCK"}, "NULL"),
        "TUFF_VALIDATE": (on("CPU"), {}, "CPU"),
        "TUFF_WRITE_FAULT": (on("NULL"), {}, "NULL"),
        "TUFF_SKIP": (on("CPU"), {}, "CPU"),
    }
    NO_FILE = ["TUFF_CACHE_DIR", "TUFF_REPORT", "TUFF_TUNED", "TUFF_PROFILE"]
    # Of programs with kernels of their own, tests/tensor/kernel_test.cpp; of tests/render/nvptx_test.cpp.
    OF_NO_COMMAND = ["TUFF_GLSLANG", "TUFF_PTXAS"]

    def test_every_text_has_its_place(self):
        placed = [*self.REFUSED, *self.NO_FILE, *self.OF_NO_COMMAND]
        self.assertEqual(sorted(placed), sorted(n for n, _, allowed in self.rows() if not allowed))

    def test_garbage(self):
        for name, (arguments, env, needed) in self.REFUSED.items():
            if not self.usable(needed):
                continue
            for value in ("garbage", "-1", HUGE):
                self.refused(name, value, *arguments, **env)

    def test_an_unusable_value_does_not_choose_another_device(self):
        for kind, name in (("VULKAN", "TUFF_VK_LIMIT"), ("VULKAN", "TUFF_VK_DISABLE"), ("CL", "TUFF_CL_DISABLE")):
            if self.usable(kind):
                self.refused(name, "garbage", *TRAIN[:-1])

    def test_files_that_cannot_be_written_or_read(self):
        (self.folder / "file").write_text("no folder")
        nowhere = str(self.folder / "file" / "x")
        self.refused("TUFF_CACHE_DIR", nowhere, *on("NULL"))
        self.refused("TUFF_REPORT", nowhere, *on("CPU"), TUFF_CHECK_HAZARDS="1")
        self.warned("TUFF_TUNED", nowhere, nowhere, *on("CPU"))
        self.warned("TUFF_PROFILE", nowhere, nowhere, *on("CPU"))

    def test_suggestions(self):
        self.assertIn("did you mean CPU?", self.refused("TUFF_DEVICE", "CUP", *TRAIN[:-1]))
        if self.usable("CPU"):
            self.assertIn("did you mean row-buffers?", self.refused("TUFF_SKIP", "row-bufers", *on("CPU")))


class Names(EnvironmentTest):
    def test_misspelt_ones_are_warned_of_once(self):
        for name, meant in (("TUFF_BEEM", "TUFF_BEAM"), ("TUFF_TIMEOUT", "TUFF_TIMEOUT_MS"), ("TUFF_DEVCIE", "TUFF_DEVICE"),
                            ("TUFF_debug", "TUFF_DEBUG")):
            self.warned(name, "1", f"; did you mean {meant}?", *on("CPU" if self.usable("CPU") else "NULL"))
        _, said = self.tuff(0, *on("NULL"), TUFF_WEATHER="rain")
        self.assertEqual(len(said), 1)
        self.assertIn("there is no variable TUFF_WEATHER (", said[0])
        self.assertNotIn("did you mean", said[0])

    def test_others_are_not_tuffs(self):
        self.assertEqual(self.tuff(0, *on("NULL"), TUFF_TEST_DEVICES="x", TUFFY="1", TUF_BEAM="1")[1], [])
        self.assertEqual(self.tuff(0, *on("NULL"), TUFF_BEEM="1", TUFF_LOG="error")[1], [])


class Limits(EnvironmentTest):
    """A Vulkan driver that reports the least of what it may: results are right, or the device says why not."""
    BENCHES = [["matmul", "--sizes", "33x40x65"], ["conv", "--sizes", "2x8x12x12x16x3"], ["softmax", "--sizes", "9x200"],
               ["layernorm", "--sizes", "9x200"], ["reduce", "--sizes", "5000"], ["transpose", "--sizes", "70x50"]]

    def setUp(self):
        super().setUp()
        # Each limit makes other kernels, which lavapipe compiles for seconds: its passes over them are not what is tested.
        self.env["GALLIVM_PERF"] = "nopt"

    def run_all(self, limits):
        for bench in self.BENCHES:
            out, _ = self.tuff(0, "bench", *bench, "--device", "VULKAN", "--seconds", 0, "--json", TUFF_VK_LIMIT=limits)
            self.assertTrue(json.loads(out)["correct"], (limits, bench))
        self.tuff(0, *on("VULKAN"), TUFF_VK_LIMIT=limits)

    def test_each_at_its_least(self):
        if not self.usable("VULKAN"):
            self.skipTest("no Vulkan driver")
        table = self.tuff(0, "docs", "limits")[0]
        for name, least in re.findall(r"^\| `(\w+)` \| (\d+) \|", table, re.M):
            if name == "push":
                self.assertIn("below", table)
                least = 8
            with self.subTest(limit=name):
                self.run_all(f"{name}:{least}")

    def test_odd_workgroups(self):
        if not self.usable("VULKAN"):
            self.skipTest("no Vulkan driver")
        for limits in ("invocations:3", "local_x:5", "invocations:7,local_x:2,local_y:2,local_z:2",
                       "invocations:1,shared:0,groups_x:7,groups_y:3,groups_z:2"):
            with self.subTest(limits=limits):
                self.run_all(limits)


if __name__ == "__main__":
    TUFF = os.path.abspath(sys.argv.pop(1))
    unittest.main()
