#!/usr/bin/env python3
"""Where commands write: links are followed, devices and pipes written through, modes and owners stay.

Usage: outputs_test.py PATH_OF_TUFF [unittest options]
Device nodes are the test's own, in its temporary folder; the machine's are never named as an output. What needs root
(nodes, another user) is skipped without.
"""
import json
import os
import pathlib
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

TUFF = None
OTHER = 65534  # nobody
TRAIN = ["train", "digits", "--steps", "2", "--device", "CPU", "--json"]
DEVICES = {"null": 3, "full": 7}  # mem(4), full(4)
NPY = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".ljust(117) + \
    b"\nabc"
needs_root = unittest.skipIf(os.geteuid() != 0, "needs root")


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cache.cleanup)
        cls.cache = cache.name

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file("in.npy", NPY)

    def file(self, name, contents=b"old", mode=0o644):
        path = self.folder / name
        path.write_bytes(contents)
        path.chmod(mode)
        return path

    def device(self, name):
        path = self.folder / f"{name}.npy"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, DEVICES[name]))
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            self.skipTest(f"no device can be made here: {error}")
        return path

    def tuff(self, *arguments, user=None, profile=None, **options):
        command = [TUFF, *map(str, arguments)]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        env = {**os.environ, "TUFF_CACHE_DIR": self.cache, "TUFF_DEVICE": "CPU"}
        if profile:
            env["TUFF_PROFILE"] = str(profile)
        return subprocess.run(command, cwd=self.folder, env=env, timeout=200, check=False,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options})

    def ok(self, *arguments, **options):
        result = self.tuff(*arguments, **options)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        return result

    def refused(self, text, *arguments, **options):
        result = self.tuff(*arguments, **options)
        self.assertEqual(result.returncode, 1, (arguments, result.stderr))
        self.assertIn(text, result.stderr)

    def nothing_beside(self):
        self.assertEqual([p.name for p in self.folder.rglob("*") if ".tmp." in p.name], [])

    @needs_root
    def test_profiles_leave_devices_alone(self):
        for name in DEVICES:
            device = self.device(name)
            result = self.ok(*TRAIN, profile=device)
            self.assertTrue(stat.S_ISCHR(device.lstat().st_mode), name)
            self.assertEqual("No space left on device" in result.stderr, name == "full", result.stderr)
        self.nothing_beside()

    @needs_root
    def test_conversions_leave_devices_alone(self):
        null, full = self.device("null"), self.device("full")
        (self.folder / "link.npy").symlink_to("null.npy")
        self.ok("convert", "in.npy", null)
        self.ok("convert", "in.npy", "link.npy")
        self.refused("No space left on device", "convert", "in.npy", full)
        for path in (null, full):
            self.assertTrue(stat.S_ISCHR(path.lstat().st_mode))
        self.assertTrue((self.folder / "link.npy").is_symlink())
        self.nothing_beside()

    def test_links_are_followed(self):
        there = self.folder / "there"
        there.mkdir()
        for name in ("a.npy", "b.npy", "c.npz"):
            (self.folder / name).symlink_to(f"there/{name}")
        (there / "a.npy").write_bytes(b"old")
        (there / "a.npy").chmod(0o600)
        for name in ("a.npy", "b.npy", "c.npz"):
            self.ok("convert", "in.npy", name, umask=0o027)
            self.assertTrue((self.folder / name).is_symlink())
        self.assertEqual((there / "a.npy").read_bytes()[-3:], b"abc")
        self.assertEqual(stat.S_IMODE((there / "a.npy").stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE((there / "b.npy").stat().st_mode), 0o640)
        (self.folder / "trace.json").symlink_to("there/trace.json")
        self.ok(*TRAIN, profile="trace.json")
        self.assertIn("traceEvents", json.loads((there / "trace.json").read_text()))
        self.nothing_beside()

    def test_a_link_onto_the_source_and_links_in_a_loop(self):
        (self.folder / "same.npy").symlink_to("in.npy")
        self.ok("convert", "in.npy", "same.npy")
        self.assertEqual((self.folder / "in.npy").read_bytes()[-3:], b"abc")
        (self.folder / "x.npy").symlink_to("y.npy")
        (self.folder / "y.npy").symlink_to("x.npy")
        self.refused("its links lead to each other", "convert", "in.npy", "x.npy")

    def test_pipes_are_written_through(self):
        pipe = self.folder / "pipe.npy"
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
        reader.start()
        self.ok("convert", "in.npy", pipe)
        reader.join(20)
        self.assertEqual(got[0][-3:], b"abc")
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode))
        self.refused("nobody reads from it", "convert", "in.npy", pipe)

    def test_standard_output(self):
        for name in ("out.npy", "out.npz"):
            (self.folder / name).symlink_to("/dev/stdout")
        piped = self.ok("convert", "in.npy", "out.npy", text=False)
        self.assertIn(b"abc", piped.stdout)
        self.refused("it is a stream", "convert", "in.npy", "out.npz")
        redirected = self.file("redirected", b"")
        with redirected.open("r+b") as file:
            file.write(b"before ")
            file.flush()
            self.ok("convert", "in.npy", "out.npy", stdout=file)
        self.assertTrue(redirected.read_bytes().startswith(b"before \x93NUMPY"))
        self.assertIn(b"abc", redirected.read_bytes())
        self.nothing_beside()

    def test_checkpoints_keep_their_mode(self):
        path = self.file("a.safetensors", mode=0o600)
        (self.folder / "link.safetensors").symlink_to("a.safetensors")
        self.ok(*TRAIN, "--save", "link.safetensors", "--save-every", "1")
        self.assertEqual(stat.S_IMODE(path.lstat().st_mode), 0o600)
        self.assertGreater(path.stat().st_size, 1000)
        self.assertTrue((self.folder / "link.safetensors").is_symlink())
        self.ok("train", "digits", "--device", "CPU", "--json", "--resume", "link.safetensors", "--steps", "3")
        self.nothing_beside()

    def test_curves_at_the_end_of_a_link(self):
        (self.folder / "curve.csv").symlink_to("there.csv")
        self.ok(*TRAIN, "--curve", "curve.csv")
        self.assertTrue((self.folder / "curve.csv").is_symlink())
        self.assertIn("step,loss,validation_loss", (self.folder / "there.csv").read_text())
        self.refused("Is a directory", *TRAIN, "--curve", ".")

    @needs_root
    @unittest.skipUnless(shutil.which("setpriv"), "needs setpriv")
    def test_another_user(self):
        program = pathlib.Path(TUFF)
        self.folder.chmod(0o755)
        if subprocess.run(["setpriv", f"--reuid={OTHER}", "--clear-groups", "test", "-x", program], check=False).returncode:
            self.skipTest(f"another user may not run {program}")
        theirs = self.folder / "theirs"
        theirs.mkdir()
        theirs.chmod(0o777)
        shutil.copy(self.folder / "in.npy", theirs / "foreign.npy")
        (theirs / "foreign.npy").chmod(0o644)
        self.refused("you may not write there", "convert", "in.npy", "new.npy", user=OTHER)
        self.refused("you may not write there", "convert", "in.npy", "theirs/foreign.npy", user=OTHER)
        self.ok("convert", "in.npy", "theirs/new.npy", user=OTHER)
        (theirs / "new.npy").chmod(0o600)
        self.ok("convert", "in.npy", "theirs/new.npy")  # by root
        after = (theirs / "new.npy").stat()
        self.assertEqual((after.st_uid, stat.S_IMODE(after.st_mode)), (OTHER, 0o600))
        theirs.chmod(0o1777)
        (theirs / "foreign.npy").chmod(0o666)
        self.refused("Operation not permitted", "convert", "in.npy", "theirs/foreign.npy", user=OTHER)
        self.nothing_beside()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TUFF = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
