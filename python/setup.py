"""Builds the package with CMake: pip install ./python (offline: --no-build-isolation).

TUFF_BUILD_DIR names a folder that CMake has configured already, which saves compiling the engine
again; CMAKE_ARGS are further arguments for a new one.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search(r"project\(tuff VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        given = os.environ.get("TUFF_BUILD_DIR")
        folder = pathlib.Path(given or self.build_temp).resolve()
        if not given:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                            "-DTUFF_PYTHON=ON", f"-DTUFF_PYTHON_EXECUTABLE={sys.executable}",
                            "-DTUFF_BUILD_TESTS=OFF", "-DTUFF_BUILD_BENCH=OFF",
                            *shlex.split(os.environ.get("CMAKE_ARGS", ""))], check=True)
        jobs = str(os.cpu_count() or 1)
        subprocess.run(["cmake", "--build", folder, "--target", "tuff_python", "--parallel", jobs],
                       check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve().parent
        target.mkdir(parents=True, exist_ok=True)
        built = folder / "python" / "tuff"
        for file in built.iterdir():
            if file.is_file():
                self.copy_file(str(file), str(target / file.name))


setup(version=VERSION, packages=["tuff"], package_data={"tuff": ["*.pyi", "py.typed"]},
      ext_modules=[Extension("tuff._tuff", sources=[])], cmdclass={"build_ext": CMakeBuild},
      zip_safe=False)
