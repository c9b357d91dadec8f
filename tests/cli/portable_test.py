#!/usr/bin/env python3
"""The packed gpu-check in a root that holds only glibc, the Vulkan loader and a driver (SwiftShader).

Usage: portable_test.py PACKED_FILE PATH_OF_TUFF [ICD_FILE_OF_SWIFTSHADER]
PATH_OF_TUFF is the ordinary build: its CPU device says what ten GPT steps have to give. Skipped (exit
code 77) where SwiftShader or a way into another root is missing.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

PACKED = TUFF = ICD = None
SKIPPED = 77
MAX_BINARY_BYTES = 60 << 20
LOSS_TOLERANCE = 1e-3
# What a bare machine has: the files of the package libc6 that programs link.
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
LOADER = "libvulkan.so.1"
SMALL_GPT = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "16", "--batch", "4"]


def libraries(path):
    """Name and place of every library that a program or library needs, the linker included."""
    found = {}
    for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if words[0].startswith("/"):
            found[os.path.basename(words[0])] = words[0]
        elif "=>" in words and words[2].startswith("/"):
            found[words[0]] = words[2]
    return found


def loader_path():
    for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.split()[0] == LOADER and "x86-64" in line:
            return line.split()[-1]
    return None


def way_in():
    """The command that runs another one in a root, or none."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    names = ["chroot"] if os.geteuid() == 0 else ["unshare", "chroot"]
    programs = [shutil.which(name, path=path) for name in names]
    if None in programs:
        return None
    way = programs if len(programs) == 1 else [programs[0], "--map-root-user", programs[1]]
    tried = subprocess.run([*way, "/", "/bin/true"], capture_output=True, check=False)
    return way if tried.returncode == 0 else None


class Root:
    """A folder as the root of a bare machine."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("tmp", "dev"):
            (self.folder / name).mkdir()
        self.placed = set()

    def place(self, source, target):
        target = self.folder / target.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        self.placed.add(target.name)

    def place_libraries(self, path):
        for name, source in libraries(path).items():
            self.place(source, "/lib64/" + name if name.startswith("ld-") else "/lib/x86_64-linux-gnu/" + name)

    def run(self, *command, **environment):
        env = {"PATH": "/bin", "HOME": "/tmp", "VK_DRIVER_FILES": "/driver/" + os.path.basename(ICD), **environment}
        return subprocess.run([*way_in(), str(self.folder), *command], capture_output=True, text=True, env=env,
                              timeout=900, check=False)


def rows(result):
    if result.returncode != 0:
        raise AssertionError(f"{result.args}: {result.returncode} {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


class BareMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.root = Root(cls.keep.name)
        with tarfile.open(PACKED) as packed:
            packed.extractall(cls.keep.name, filter="data")
        cls.binary = pathlib.Path(cls.keep.name) / "tuff-gpu-check/tuff"
        cls.root.place_libraries(cls.binary)
        cls.root.place(loader_path(), "/lib/x86_64-linux-gnu/" + LOADER)
        cls.root.place_libraries(loader_path())
        driver = pathlib.Path(ICD).parent / "libvk_swiftshader.so"
        cls.root.place(ICD, "/driver/" + os.path.basename(ICD))
        cls.root.place(driver, "/driver/" + driver.name)
        cls.root.place_libraries(driver)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def tuff(self, *arguments, **environment):
        return self.root.run("/tuff-gpu-check/tuff", *arguments, **environment)

    def test_the_binary_needs_only_glibc(self):
        self.assertLessEqual(set(libraries(self.binary)), GLIBC)
        self.assertLessEqual(self.binary.stat().st_size, MAX_BINARY_BYTES)
        drivers_own = {"libgcc_s.so.1", "libz.so.1", LOADER, "libvk_swiftshader.so", os.path.basename(ICD)}
        self.assertLessEqual(self.root.placed, GLIBC | drivers_own)

    def test_devices_says_what_is_there_and_what_is_not(self):
        by_kind = {row["kind"]: row for row in rows(self.tuff("devices", "--json"))}
        self.assertTrue(by_kind["VULKAN"]["usable"], by_kind["VULKAN"]["reason"])
        self.assertIn("SwiftShader", by_kind["VULKAN"]["driver"])
        self.assertFalse(by_kind["CPU"]["usable"])
        self.assertIn("clang", by_kind["CPU"]["reason"])

    def test_conformance(self):
        if "\n  check " not in self.tuff("--help").stdout:
            self.skipTest("this tuff has no check command")
        result = self.tuff("check", "--device", "VULKAN", "--filter", "*add*", "--json")
        verdicts = [row.get("verdict") for row in rows(result)]
        self.assertIn("pass", verdicts)
        self.assertFalse({"fail", "crash", "hang"} & set(verdicts))


class Script(BareMachine):
    """The script itself, which needs bash besides."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root.place("/bin/bash", "/bin/bash")
        cls.root.place_libraries("/bin/bash")

    # Those of the base class have run.
    test_the_binary_needs_only_glibc = test_devices_says_what_is_there_and_what_is_not = None
    test_conformance = None

    def check(self, *arguments, **environment):
        (self.root.folder / "out").mkdir(exist_ok=True)
        for old in (self.root.folder / "out").glob("*.json"):
            old.unlink()
        result = self.root.run("/bin/bash", "/tuff-gpu-check/gpu-check", "--out", "/out", *arguments, **environment)
        files = list((self.root.folder / "out").glob("*.json"))
        return result, json.loads(files[0].read_text(encoding="utf-8")) if files else None

    def test_runs_everything_and_writes_one_file(self):
        result, written = self.check("--software", "--quick")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([s["name"] for s in written["steps"]],
                         ["bring-up", "conformance", "training gpt", "training digits", "replay"])
        self.assertLessEqual({s["status"] for s in written["steps"]}, {"passed", "absent"})
        self.assertIn("SwiftShader", written["device"]["driver"])
        cpu = subprocess.run([TUFF, "train", "gpt", *SMALL_GPT, "--steps", "10", "--sample", "0", "--json", "--device", "CPU"],
                             capture_output=True, text=True, cwd=self.keep.name, timeout=900, check=False)
        self.assertAlmostEqual(written["gpt"]["val_loss"], rows(cpu)[-1]["val_loss"], delta=LOSS_TOLERANCE)
        self.assertEqual(written["replay"]["replayed"]["submits_per_step"], 1)
        self.assertGreater(written["replay"]["built_anew"]["host_us_median"], 0)
        self.assertEqual(set(written["machine"]["nvidia_kernel_interface"]),
                         {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/proc/driver/nvidia/version"})
        self.assertEqual(written["bringup"][-1]["step"], "suite")
        self.assertIn("/dev/kfd", written["machine"]["amd_kernel_interface"])
        self.assertIn("[5/5]", result.stderr)

    def test_without_a_gpu_it_says_so(self):
        result, written = self.check()
        self.assertEqual((result.returncode, written), (3, None))
        self.assertIn("no hardware Vulkan device", result.stderr)
        result, _ = self.check("--device", "VULKAN:7")
        self.assertEqual(result.returncode, 3)
        self.assertIn("VULKAN:7", result.stderr)
        result, _ = self.check("--software", TUFF_VK_LIMIT="push:4")
        self.assertEqual(result.returncode, 3)
        self.assertIn("8 bytes of push constants", result.stderr)

    def test_wrong_usage(self):
        for wrong in (["--gpu"], ["--device"], ["--device", ""]):
            result, written = self.check(*wrong)
            self.assertEqual((result.returncode, written), (2, None), result.stderr)

    def check_planted(self, cases):
        """With a program in the place of tuff that answers some commands itself."""
        folder = self.root.folder / "tuff-gpu-check"
        (folder / "tuff").rename(folder / "tuff.real")
        try:
            (folder / "tuff").write_text(f'#!/bin/bash\ncase "$*" in {cases} esac\nexec "$0.real" "$@"\n', encoding="ascii")
            (folder / "tuff").chmod(0o755)
            result, written = self.check("--software", "--quick")
        finally:
            (folder / "tuff.real").replace(folder / "tuff")
        self.assertEqual(result.returncode, 1, result.stderr)
        return written

    def test_steps_that_fail_are_in_the_file(self):
        written = self.check_planted("'check '* | 'train '*) echo planted >&2; exit 1 ;;")
        self.assertEqual([(s["name"], s["status"]) for s in written["steps"]],
                         [("bring-up", "passed"), ("conformance", "failed"), ("training gpt", "failed"),
                          ("training digits", "failed"), ("replay", "failed")])
        self.assertEqual(written["steps"][3]["detail"], "planted")
        self.assertIsNone(written["digits"])

    def test_nothing_is_tried_beyond_a_part_that_fails(self):
        row = '{"step":"memory","status":"failed","ms":1.5,"detail":"planted"}'
        written = self.check_planted(f"bringup*) echo '{row}'; exit 1 ;;")
        self.assertEqual([s["name"] for s in written["steps"]], ["bring-up"])
        self.assertIn("memory: planted", written["steps"][0]["detail"])


if __name__ == "__main__":
    PACKED, TUFF = map(os.path.abspath, sys.argv[1:3])
    ICD = sys.argv[3] if len(sys.argv) > 3 else ""
    for reason in [text for text, missing in (("SwiftShader is not here (scripts/swiftshader)", not ICD),
                                              ("there is no Vulkan loader", not loader_path()),
                                              ("no way into another root (chroot, unshare)", not way_in())) if missing]:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
