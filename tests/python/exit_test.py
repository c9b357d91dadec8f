"""The interpreter ends while threads compute: with the exit code of the program, in moderate time."""
import os
import subprocess
import sys
import time
import unittest

WORK = {
    "eager": "while True: (tuff.ones([64, 64]) @ tuff.ones([64, 64])).sum().item()",
    "small": "while True: x = tuff.tensor([1.0, 2.0]) + 1; x.realize(); x.tolist()",
    "large": "a = tuff.rand([1500, 1500]).realize()\nwhile True: (a @ a).sum().item()",
    "graphs": "while True: [tuff.ones(3) + i for i in range(99)]",
    "buffers": "x = tuff.arange(4.0)\nwhile True: memoryview(x + 1).tolist()",
    "captured": """
f = tuff.jit(lambda x: [x * i for i in range(9)])
while True: f(tuff.ones(4).realize())""",
    "capturing": """
def function(x):
    for i in range(200): x = x + 1
    return x
while True: f = tuff.Jit(function); f(tuff.ones(4)); f(tuff.ones(4))""",
    "endless call": """
def function(x):
    while True: time.sleep(0.01)
tuff.Jit(function)(tuff.ones(4))""",
    "files": "import tempfile, os\np = os.path.join(tempfile.mkdtemp(), 'a.npy')\nwhile True: tuff.save(p, {'a': tuff.ones(9)}); tuff.load(p)['a'].tolist()",
}
PROGRAM = """
import atexit, sys, threading, time, tuff
ready = threading.Event()
def work():
    ready.set()
    exec(sys.argv[1])
threads = [threading.Thread(target=work, daemon=True) for _ in range(int(sys.argv[2]))]
for t in threads: t.start()
ready.wait()
time.sleep(float(sys.argv[3]))
print("done")
sys.exit(7)
"""


def run(program, *arguments, timeout=60):
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)], capture_output=True,
                          text=True, timeout=timeout)
    return done, time.monotonic() - began


class Exit(unittest.TestCase):
    def check(self, work, tries, threads=2):
        for k in range(tries):
            done, _ = run(PROGRAM, WORK[work], threads, 0.2 + 0.037 * k)
            self.assertEqual((done.returncode, done.stdout), (7, "done\n"), f"try {k}: {done.stderr[-3000:]}")

    def test_daemons_that_compute(self):
        for work in ("eager", "small", "graphs", "buffers", "captured", "capturing", "files"):
            with self.subTest(work):
                self.check(work, int(os.environ.get("TUFF_TEST_TRIES", 3)))

    def test_a_large_kernel(self):
        self.check("large", 2)

    def test_a_call_that_does_not_end(self):
        self.check("endless call", 3)

    def test_who_is_waited_for_by_what_comes_later_goes_on(self):
        done, seconds = run("""
import atexit, sys, threading
stop = threading.Event()
def end():
    stop.set()
    thread.join()
    print("joined")
atexit.register(end)
import tuff  # whose own handler runs before
def work():
    while not stop.is_set(): tuff.ones(4).sum().item()
thread = threading.Thread(target=work, daemon=True)
thread.start()
sys.exit(5)
""")
        self.assertEqual((done.returncode, done.stdout), (5, "joined\n"), done.stderr)
        self.assertLess(seconds, 30)

    def test_children_of_fork_do_not_wait_for_threads_that_they_lack(self):
        done, _ = run("""
import os, sys, threading, time, tuff
def function(x):
    while True: time.sleep(0.01)
threading.Thread(target=lambda: tuff.Jit(function)(tuff.ones(4)), daemon=True).start()
time.sleep(0.2)
child = os.fork()
began = time.monotonic()
if child == 0: sys.exit(3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, time.monotonic() - began < 4)
sys.stdout.flush()
os._exit(0)
""")
        self.assertEqual((done.returncode, done.stdout), (0, "3 True\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
