#!/usr/bin/env python3
"""The disk caches from outside: whose files are used, what a full or read-only disk and a missing compiler do, and
`tuff cache`.

Usage: cache_test.py PATH_OF_TUFF [unittest options]
Users and disks need root and a namespace of the test's own; what the system does not allow is skipped, and says so.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TUFF = None
INSIDE = "TUFF_TEST_CACHE_INSIDE"
SMALL = ["--layers", "1", "--heads", "2", "--context", "8", "--batch", "2", "--sample", "0", "--steps", "2", "--json"]
NAMESPACE = False
NOBODY = 65534


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        self.database = self.cache / "tuff-cache-v1.db"

    def run_tuff(self, *arguments, code=0, user=None, **env):
        settings = {**os.environ, "TUFF_CACHE_DIR": str(self.cache), **env}
        result = subprocess.run([TUFF, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=250,
                                cwd="/" if user else self.folder, env=settings, user=user, group=user,
                                extra_groups=[] if user else None)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result

    def train(self, embed=16, **env):
        """The losses, how many kernels were compiled, and the lines on standard error."""
        result = self.run_tuff("train", "gpt", "--device", "CPU", "--embed", embed, *SMALL, "--curve", self.folder / "x.csv",
                               **env)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return [r["loss"] for r in rows if r["event"] == "step"], result.stderr.splitlines()

    def info(self, **env):
        return json.loads(self.run_tuff("cache", "info", "--json", **env).stdout)

    def without_compiler(self):
        return {"PATH": str(self.folder)}

    def test_a_filled_cache_needs_no_compiler(self):
        losses, _ = self.train()
        self.assertEqual(self.train(**self.without_compiler())[0], losses)
        missing = self.run_tuff("train", "gpt", "--device", "CPU", "--embed", 24, *SMALL, code=1, **self.without_compiler())
        self.assertIn("no C compiler: install clang, or name one with TUFF_CC", missing.stderr)
        self.assertIn("not in the disk cache", missing.stderr)
        shutil.rmtree(self.cache)
        empty = self.run_tuff("train", "gpt", "--device", "CPU", *SMALL, code=1, **self.without_compiler())
        self.assertIn("no C compiler: install clang, or name one with TUFF_CC", empty.stderr)

    def test_another_users_cache_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        losses, _ = self.train()
        before = self.database.read_bytes()
        for path in (self.database, self.cache):
            os.chown(path, NOBODY, NOBODY)
            again, said = self.train()
            self.assertEqual(again, losses)
            named = [line for line in said if str(path) in line]
            self.assertEqual(len(named), 1, said)
            for word in ("no disk cache", "owner nobody", "mode 0", "TUFF_CACHE_DIR"):
                self.assertIn(word, named[0])
            os.chown(path, 0, 0)
        self.assertEqual(self.database.read_bytes(), before)
        os.chmod(self.cache, 0o777)
        _, said = self.train()
        self.assertTrue(any("mode 0777" in line and "chmod" in line for line in said), said)
        self.assertIn("mode 0777", self.run_tuff("cache", "info", code=1).stderr)

    def test_a_cache_that_root_filled_is_read(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        losses, _ = self.train()
        os.chmod(self.folder, 0o755)
        for path in [self.cache, *self.cache.rglob("*")]:
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
        # Without a compiler: every kernel comes from there.
        result = self.run_tuff("train", "gpt", "--device", "CPU", "--embed", 16, *SMALL, "--curve", "/dev/null",
                               user=NOBODY, PATH="/nowhere", HOME="/")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([r["loss"] for r in rows if r["event"] == "step"], losses)
        self.assertEqual(result.stderr, "")

    def mount(self, size, *options):
        if not NAMESPACE:
            self.skipTest("no file system may be mounted here")
        self.cache.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", "mode=0700", *options]), "none", self.cache],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.cache], check=True)

    def test_a_full_disk_deletes_nothing(self):
        self.mount("8m")
        losses, _ = self.train()
        kept = self.info()
        (self.cache / "filler").write_bytes(b"")
        with open(self.cache / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
        inode = self.database.stat().st_ino
        self.assertEqual(self.train()[0], losses)
        _, said = self.train(embed=32)
        self.assertLessEqual(sum("the disk cache" in line for line in said), 1, said)
        (self.cache / "filler").unlink()
        self.assertEqual(self.database.stat().st_ino, inode)
        self.assertGreaterEqual(self.info()["programs"], kept["programs"])
        self.assertEqual(self.train(**self.without_compiler())[0], losses)

    def test_a_read_only_file_system(self):
        self.mount("8m")
        losses, _ = self.train()
        subprocess.run(["mount", "-o", "remount,ro", self.cache], check=True)
        again, said = self.train(**self.without_compiler())
        self.assertEqual((again, said), (losses, []))
        self.assertFalse(self.info()["writable"])
        self.assertIn("cannot be written", self.run_tuff("cache", "clear", code=1).stderr)

    def test_commands(self):
        self.assertEqual(self.info()["programs"], 0)
        self.assertFalse(self.cache.exists())
        self.train()
        info = self.info()
        self.assertGreater(info["programs"], 0)
        self.assertGreaterEqual(info["kernels"], info["programs"])
        self.assertEqual(info["limit_bytes"], 4096 << 20)
        self.assertIn("programs", self.run_tuff("cache", "info").stdout)
        rows = [json.loads(line) for line in self.run_tuff("cache", "list", "--json").stdout.splitlines()]
        self.assertEqual(sum(r["kind"] == "program" for r in rows), info["programs"])
        self.assertEqual(rows[0]["last_used"], time.strftime("%Y-%m-%d", time.gmtime()))
        self.assertIn("0 damaged", self.run_tuff("cache", "verify").stdout)
        self.run_tuff("cache", "prune", code=2)
        self.assertEqual(json.loads(self.run_tuff("cache", "prune", "--days", 1, "--json").stdout)["removed_entries"], 0)
        self.run_tuff("cache", "prune", "--mib", 0)
        self.assertEqual(self.info()["programs"], 0)
        self.train()
        self.assertEqual(self.info()["programs"], info["programs"])
        self.run_tuff("cache", "clear")
        self.assertEqual((self.info()["programs"], self.info()["kernels"]), (0, 0))
        self.assertIn("0 entries, 0 damaged", self.run_tuff("cache", "verify").stdout)

    def test_verify_finds_damage(self):
        self.train()
        data = bytearray(self.database.read_bytes())
        at = data.find(b"\x7fELF")
        self.assertGreater(at, 0)
        data[at + 40] ^= 1
        self.database.write_bytes(data)
        result = self.run_tuff("cache", "verify", "--json", code=1)
        self.assertEqual(len(json.loads(result.stdout)["damaged"]), 1)
        self.assertIn("made anew", result.stderr)
        self.train()
        self.run_tuff("cache", "verify")

    def test_the_bound(self):
        self.run_tuff("train", "gpt", "--device", "CPU", *SMALL, code=1, TUFF_CACHE_MIB="-1")
        for embed in (16, 24, 32, 40):
            self.train(embed=embed, TUFF_CACHE_MIB="1")
            self.assertLessEqual(self.info()["bytes"], 1 << 20)
        self.run_tuff("cache", "verify")


def enter_namespace():
    """Runs this test once more where it may mount, if that is possible."""
    if INSIDE in os.environ:
        return True
    own = ["unshare", "--map-root-user", "--mount"] if os.geteuid() else ["unshare", "--mount"]
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run([*own, "mount", "-t", "tmpfs", "none", folder], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        print(f"no file system may be mounted here: {probe.stderr.strip()}")
        return False
    os.environ[INSIDE] = "1"
    os.execvp(own[0], [*own, sys.executable, *sys.argv])
    return True


if __name__ == "__main__":
    NAMESPACE = enter_namespace()
    TUFF = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
