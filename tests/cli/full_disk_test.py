#!/usr/bin/env python3
"""Checkpoints and adapters of trainings on a disk that is really full, read-only, limited or gone: the training goes on, the
checkpoint before stays whole, nothing is left beside it, and a state that is not saved in the end is an error.

Usage: full_disk_test.py PATH_OF_TUFF [unittest options]
Disks are mounts of tmpfs in a namespace of the test's own. Exit code 77 where the system allows none.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

TUFF = None
INSIDE = "TUFF_TEST_INSIDE_FULL_DISK"
PAGE = 4096
TRAIN = ["train", "gpt", "--device", "NULL", "--sample", "0", "--layers", "1", "--heads", "2", "--embed", "16", "--context", "8",
         "--batch", "2", "--json"]
NO_SPACE = "No space left on device; free space on its file system, or write elsewhere"
GOES_ON = "; the training goes on, and the next checkpoint is tried"


class Training:
    """A run that saves every third step, watched by its lines."""

    def __init__(self, test, steps=1_000_000):
        command = [TUFF, *TRAIN, "--steps", str(steps), "--save", str(test.file), "--save-every", "3"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=test.folder, text=True,
                                        env={**os.environ, "TUFF_CACHE": "0"})
        test.addCleanup(self.kill)
        self.rows = []

    def until(self, event):
        for line in self.process.stdout:
            self.rows.append(json.loads(line))
            if self.rows[-1]["event"] == event:
                return self.rows[-1]
        raise AssertionError(f"no {event}: {self.process.stderr.read()}")

    def end(self, interrupt=False):
        """Exit code and what it said on standard error."""
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        with self.process:
            self.rows += [json.loads(line) for line in self.process.stdout]
            error = self.process.stderr.read()
        return self.process.returncode, error

    def kill(self):
        """A test that failed leaves no training behind."""
        if not self.process.stdout.closed:
            self.process.kill()
            self.end()

    def events(self):
        return [(r["event"], r["step"]) for r in self.rows if r["event"].startswith("checkpoint")]


class Disk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.disk = self.folder / "disk"
        self.file = self.disk / "a.safetensors"
        self.disk.mkdir()

    def mount(self, pages):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "none", self.disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.disk], check=True)


class FullDiskTest(Disk):
    def checkpoint_pages(self):
        result = subprocess.run([TUFF, *TRAIN, "--steps", "9", "--save", self.folder / "size.safetensors"], check=False,
                                capture_output=True, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return -(-(self.folder / "size.safetensors").stat().st_size // PAGE)

    def step(self):
        """Of the checkpoint, which a training goes on from."""
        listing = subprocess.run([TUFF, "inspect", "--json", self.file], capture_output=True, text=True, check=True).stdout
        step = int(next(r["value"] for r in map(json.loads, listing.splitlines()) if r.get("key") == "step"))
        result = subprocess.run([TUFF, "train", "gpt", "--device", "NULL", "--sample", "0", "--json", "--resume", self.file,
                                 "--steps", str(step + 1)], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return step

    def test_room_for_one_checkpoint(self):
        pages = self.checkpoint_pages()
        self.mount(2 * pages - 1)
        run = Training(self, steps=9)
        code, error = run.end()
        self.assertEqual(code, 1, error)
        self.assertEqual(run.events(), [("checkpoint", 3), ("checkpoint_failed", 6), ("checkpoint_failed", 9)])
        lines = error.splitlines()
        self.assertEqual(len(lines), 2, error)
        for step, line in zip((6, 9), lines):
            self.assertTrue(line.startswith(f"tuff: step {step} is not saved: cannot write '{self.file}': at byte "), line)
            self.assertIn(f": {NO_SPACE}; the checkpoint of step 3 is whole", line)
        self.assertEqual([line.endswith(GOES_ON) for line in lines], [True, False])
        done = run.rows[-1]
        self.assertEqual((done["event"], done["steps"], f"tuff: {done['unsaved']}"), ("done", 9, lines[1]))
        self.assertEqual(os.listdir(self.disk), ["a.safetensors"])
        self.assertEqual(self.step(), 3)

    def test_room_is_made_meanwhile(self):
        pages = self.checkpoint_pages()
        self.mount(16 * pages)
        (self.disk / "filler").write_bytes(bytes(15 * pages * PAGE + PAGE))
        run = Training(self)
        self.assertIn("there is no checkpoint", run.until("checkpoint_failed")["error"])
        (self.disk / "filler").unlink()
        saved = run.until("checkpoint")["step"]
        code, error = run.end(interrupt=True)
        self.assertEqual(code, 130, error)
        self.assertGreaterEqual(saved, 6)
        self.assertEqual(os.listdir(self.disk), ["a.safetensors"])
        self.assertEqual(self.step(), run.rows[-1]["steps"])

    def test_an_interrupt_on_a_full_disk_is_an_error(self):
        self.mount(2)
        run = Training(self)
        run.until("checkpoint_failed")
        code, error = run.end(interrupt=True)
        self.assertEqual(code, 1, error)
        last = error.splitlines()[-1]
        self.assertIn(f"step {run.rows[-1]['steps']} is not saved", last)
        self.assertIn(NO_SPACE, last)
        self.assertEqual(os.listdir(self.disk), [])

    def test_a_disk_that_becomes_read_only(self):
        self.mount(1000)
        run = Training(self)
        run.until("checkpoint")
        while subprocess.run(["mount", "-o", "remount,ro", self.disk], capture_output=True, check=False).returncode:
            pass  # busy while a checkpoint is written
        error = run.until("checkpoint_failed")["error"]
        self.assertIn(f"cannot write '{self.file}': Read-only file system; its file system is read-only: write elsewhere",
                      error)
        code, error = run.end(interrupt=True)
        self.assertEqual(code, 1, error)
        self.assertEqual(self.step(), max(step for event, step in run.events() if event == "checkpoint"))

    def test_a_folder_that_is_removed_and_made_again(self):
        run = Training(self)
        run.until("checkpoint")
        self.disk.rename(self.folder / "removed")  # in one step: no checkpoint is written half way through it
        error = run.until("checkpoint_failed")["error"]
        self.assertIn("No such file or directory; its folder is not there: make it, or write elsewhere", error)
        self.disk.mkdir()
        run.until("checkpoint")
        code, error = run.end(interrupt=True)
        self.assertEqual(code, 130, error)
        self.assertEqual(self.step(), run.rows[-1]["steps"])

    def test_files_that_may_not_be_so_long(self):
        command = [TUFF, *TRAIN, "--steps", "2", "--save", str(self.file)]
        run = subprocess.run(["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *command], capture_output=True, text=True,
                             cwd=self.folder, env={**os.environ, "TUFF_CACHE": "0"}, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("File too large; its file system, or ulimit -f, allows no longer file; there is no checkpoint",
                      run.stderr)
        self.assertEqual(os.listdir(self.disk), [])


class FullDiskOfAnAdapterTest(Disk):
    """Without --save the adapter is all that is left of a training."""

    def finetune(self, spare):
        text = self.folder / "text"
        text.write_text("abcdefgh" * 60)
        model = pathlib.Path(__file__).resolve().parent.parent / "data/language/qwen2.gguf"
        run = subprocess.run([TUFF, "finetune", model, "--text", text, "--context", "16", "--rank", "2", "--device", "CPU",
                              "--steps", "1", "--out", self.disk / "adapter", "--curve", self.folder / "curve.csv"],
                             capture_output=True, text=True, cwd=self.disk, env={**os.environ, "TMPDIR": str(spare)},
                             check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(NO_SPACE, run.stderr)
        self.assertEqual(os.listdir(self.disk / "adapter"), [])
        return model, text, run

    def test_it_is_kept_elsewhere(self):
        self.mount(2)
        spare = self.folder / "spare"
        spare.mkdir()
        model, text, run = self.finetune(spare)
        kept = spare / os.listdir(spare)[0]
        self.assertIn(f"; the adapter is in {kept} instead: move it", run.stderr)
        self.assertIn(f"adapter: {kept} (tuff chat {model} --lora {kept})", run.stdout)
        subprocess.run([TUFF, "perplexity", model, "--text", text, "--context", "16", "--device", "CPU", "--lora", kept],
                       capture_output=True, check=True)

    def test_nothing_is_left_where_there_is_no_room_at_all(self):
        self.mount(2)
        self.finetune(self.disk)
        self.assertEqual(os.listdir(self.disk), ["adapter"])


def enter_namespace():
    """Runs this test once more where it may mount."""
    if INSIDE in os.environ:
        return
    own = ["unshare", "--map-root-user", "--mount"]
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run([*own, "mount", "-t", "tmpfs", "none", folder], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        print(f"skipped: no file system may be mounted here: {probe.stderr.strip()}")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp(own[0], [*own, sys.executable, *sys.argv])


if __name__ == "__main__":
    enter_namespace()
    TUFF = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
