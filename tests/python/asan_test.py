"""Runs the tests of shared memory once more with the address sanitizer.

Usage: asan_test.py LIBASAN FOLDER    FOLDER holds the package built as tuff_python_asan
The sanitizer sees what the module's own code, NumPy, PyTorch and Python allocate, and what tuff's
allocator takes back; memory that was freed is filled, so that kernels, which it does not see, compute
nonsense from it. Leaks are left to the tests' own counting: Python leaks at exit by design.
"""
import os
import pathlib
import subprocess
import sys
import unittest

LIBASAN, FOLDER = sys.argv[1:3]
if not list(pathlib.Path(FOLDER).glob("tuff/_tuff*")):
    print("skipped: the module is not built: cmake --build BUILD --target tuff_python_asan")
    sys.exit(77)
TESTS = pathlib.Path(__file__).resolve().parent
SETUP = f"import sys; sys.path.insert(0, {str(TESTS)!r})\nimport ctypes, gc, numpy as np, tuff, dlpack_test as d\n"


def run(*arguments, timeout=600):
    environment = dict(os.environ, PYTHONPATH=FOLDER, LD_PRELOAD=f"{LIBASAN}:libstdc++.so.6", PYTHONMALLOC="malloc",
                       ASAN_OPTIONS="detect_leaks=0:quarantine_size_mb=32:max_free_fill_size=1048576:free_fill_byte=221:"
                                    "detect_stack_use_after_return=1:verify_asan_link_order=0",
                       UBSAN_OPTIONS="print_stacktrace=1")
    return subprocess.run([sys.executable, "-X", "faulthandler", *arguments], env=environment, capture_output=True,
                          text=True, timeout=timeout)


class Sanitized(unittest.TestCase):
    def assert_passes(self, test, *names):
        done = run(str(TESTS / f"{test}_test.py"), *names)
        print(f"{test}: {done.stderr.strip().splitlines()[-3:]}", flush=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-8000:])
        self.assertRegex(done.stderr, r"Ran [1-9]\d* tests")

    def test_lifetimes_of_dlpack(self):
        self.assert_passes("dlpack")

    def test_shared_memory(self):
        self.assert_passes("sharing")

    def test_sharing_with_pytorch(self):
        self.assert_passes("torch", "Sharing")

    def assert_found(self, kind, code):
        done = run("-c", SETUP + code)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stderr, f"AddressSanitizer: {kind}", done.stderr[-3000:])

    def test_a_deleter_that_is_called_twice_is_found(self):
        self.assert_found("(heap-use-after-free|attempting double-free)", """
m = d.take(tuff.ones(3).__dlpack__(), d.Legacy)
delete, at = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.cast(m.deleter, ctypes.c_void_p).value), ctypes.addressof(m)
delete(at); delete(at)
""")

    def test_memory_used_after_it_was_given_back_is_found(self):
        self.assert_found("use-after-poison", """
m = d.take(tuff.ones(300).realize().__dlpack__(), d.Legacy)
data, at = m.tensor.data, ctypes.addressof(m)
m.deleter(at)
d.settle()
ctypes.memset(data, 0, 1200)
""")

    def test_a_producer_that_frees_what_it_gave_is_found(self):
        self.assert_found("heap-use-after-free", """
a = np.ones(3000, np.float32)
t = tuff.from_dlpack(d.Producer(a).capsule())
d.Producer.given.clear()
del a; gc.collect()
t.copy_to(bytearray(12000))
""")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
