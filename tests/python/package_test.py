"""pip installs the package, and CMake does: each is used from where it was put, and nothing else.
Usage: package_test.py SOURCE BUILD"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
PROGRAM = ("import tuff, sys; assert tuff.__file__.startswith(sys.argv[1]), tuff.__file__; "
           "print((tuff.arange(4) * 2).tolist())")


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tuff-package-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_checked(self, *argv, **environment):
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True,
                              cwd=self.folder, env=env | environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_use(self, site):
        self.assertEqual(self.run_checked(sys.executable, "-c", PROGRAM, site, PYTHONPATH=str(site)),
                         "[0, 2, 4, 6]\n")
        names = {p.name for p in (site / "tuff").iterdir() if p.is_file()}
        self.assertEqual(names - {n for n in names if n.startswith("_tuff.")},
                         {p.name for p in (SOURCE / "tuff").iterdir() if p.is_file()})

    def test_pip(self):
        copy = self.folder / "source" / "python"
        copy.parent.mkdir()
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "build"))
        shutil.copy(SOURCE.parent / "CMakeLists.txt", copy.parent)
        site = self.folder / "site"
        self.run_checked(sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps",
                         "--no-index", "--disable-pip-version-check", "--target", site, copy,
                         TUFF_BUILD_DIR=str(BUILD))
        self.check_use(site)

    def test_cmake(self):
        prefix = self.folder / "prefix"
        self.run_checked("cmake", "--install", BUILD, "--prefix", prefix, "--component", "python")
        site, = prefix.glob("lib/python3*/site-packages")
        self.check_use(site)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
