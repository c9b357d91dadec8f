#!/usr/bin/env python3
"""`tuff inspect` and `tuff convert` from outside, against the formats' own libraries.

Usage: files_test.py PATH_OF_TUFF DATA_FOLDER [unittest options]
With NumPy: files that it wrote are read, and it reads what tuff wrote. Checkpoints of PyTorch are in
DATA_FOLDER/pytorch (scripts/pytorch-files.py). Exit code 77 without NumPy.
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
import zipfile

try:
    import numpy
except ImportError:
    numpy = None

TUFF = DATA = None
TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64"]
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (2, 3), (4, 1, 3), (1, 1, 1, 2, 1)]


class FilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tuff(self, code, *arguments):
        env = {**os.environ, "TUFF_DEVICE": "CPU", "TUFF_CACHE_DIR": str(self.folder / "cache")}
        result = subprocess.run([TUFF, *map(str, arguments)], capture_output=True, cwd=self.folder, env=env,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result

    def arrays(self):
        random = numpy.random.default_rng(5)
        out = {}
        for dtype in TYPES:
            for shape in SHAPES:
                values = random.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
                out[f"{dtype}_{'x'.join(map(str, shape))}"] = values
        return out

    def assert_same(self, wanted, path):
        with numpy.load(path) as got:
            self.assertEqual(sorted(got.files), sorted(wanted))
            for name, values in wanted.items():
                self.assertEqual((got[name].dtype, got[name].shape), (values.dtype, values.shape), name)
                self.assertEqual(got[name].tobytes(), values.tobytes(), name)


class NumPy(FilesTest):
    def test_npz_both_ways(self):
        wanted = self.arrays()
        for save in (numpy.savez, numpy.savez_compressed):
            save(self.folder / "a.npz", **wanted)
            for flags in ([], ["--compress"]):
                self.tuff(0, "convert", "a.npz", "b.npz", *flags)
                self.assert_same(wanted, self.folder / "b.npz")

    def test_through_safetensors(self):
        wanted = self.arrays()
        numpy.savez(self.folder / "a.npz", **wanted)
        self.tuff(0, "convert", "a.npz", "a.safetensors")
        self.tuff(0, "convert", "a.safetensors", "b.npz")
        self.assert_same(wanted, self.folder / "b.npz")

    def test_npy_both_ways(self):
        for values in self.arrays().values():
            numpy.save(self.folder / "a.npy", values)
            self.tuff(0, "convert", "a.npy", "b.npy")
            got = numpy.load(self.folder / "b.npy")
            self.assertEqual((got.dtype, got.shape, got.tobytes()), (values.dtype, values.shape, values.tobytes()))

    def test_other_byte_order_and_columns_first(self):
        values = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
        for other in (values.astype(">f4"), numpy.asfortranarray(values), numpy.asfortranarray(values.astype(">f4"))):
            numpy.save(self.folder / "a.npy", other)
            self.tuff(0, "convert", "a.npy", "b.npy")
            self.assertTrue((numpy.load(self.folder / "b.npy") == values).all())

    def test_dtype(self):
        values = numpy.linspace(-3, 3, 50, dtype="float32")
        numpy.savez(self.folder / "a.npz", x=values, n=numpy.arange(3))
        self.tuff(0, "convert", "a.npz", "b.npz", "--dtype", "float16")
        self.assert_same({"x": values.astype("float16"), "n": numpy.arange(3)}, self.folder / "b.npz")

    def test_what_is_refused(self):
        numpy.save(self.folder / "a.npy", numpy.array([1j]))
        self.assertIn(b"'<c16' is not read", self.tuff(1, "inspect", "a.npy").stderr)
        numpy.save(self.folder / "a.npy", numpy.array([{}], dtype=object), allow_pickle=True)
        self.assertIn(b"'|O' is not read", self.tuff(1, "inspect", "a.npy").stderr)


class PyTorch(FilesTest):
    def check(self, name):
        wanted = json.loads((DATA / f"{name}.json").read_text())
        self.tuff(0, "convert", DATA / f"{name}.pt", "a.safetensors")
        raw = (self.folder / "a.safetensors").read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:8 + length])
        metadata = header.pop("__metadata__", {})
        self.assertEqual(list(header), list(wanted))
        dtypes = {"bool": "BOOL", "bfloat16": "BF16", "uint8": "U8"}
        for key, row in wanted.items():
            got, dtype = header[key], row["dtype"]
            self.assertEqual(got["dtype"], dtypes.get(dtype) or dtype[0].upper() + dtype.lstrip("flointa"), key)
            self.assertEqual(got["shape"], row["shape"], key)
            begin, end = got["data_offsets"]
            self.assertEqual(raw[8 + length + begin:8 + length + end].hex(), row["bytes"], key)
        return metadata

    def test_types(self):
        self.check("types")

    def test_views(self):
        self.check("views")

    def test_training(self):
        metadata = self.check("training")
        self.assertEqual((metadata["epoch"], metadata["note"]), ("2", "small"))
        self.assertEqual(float(metadata["optimizer.param_groups.0.lr"]), 0.01)


class Commands(FilesTest):
    def test_inspect(self):
        rows = [json.loads(line) for line in
                self.tuff(0, "inspect", DATA / "views.pt", "--json").stdout.decode().splitlines()]
        self.assertEqual(rows[-1], {"event": "done", "format": "pytorch", "tensors": 10})
        self.assertEqual((rows[0]["name"], rows[0]["shape"], rows[0]["dtype"]), ("base", [3, 4, 5], "int32"))
        table = self.tuff(0, "inspect", DATA / "training.pt").stdout.decode()
        self.assertIn("model.0.weight", table)
        self.assertIn('note: "small"', table)

    def test_errors(self):
        self.assertIn(b"absent.npz", self.tuff(1, "inspect", "absent.npz").stderr)
        self.assertIn(b".safetensors, .npz or .npy", self.tuff(1, "convert", DATA / "views.pt", "a.txt").stderr)
        self.assertIn(b"absent/a.npz", self.tuff(1, "convert", DATA / "views.pt", "absent/a.npz").stderr)
        self.tuff(2, "convert", "a")
        self.tuff(2, "convert", "a", "b", "--dtype", "int4")
        (self.folder / "bad.safetensors").write_bytes(b"\xff" * 7 + b"\0{}")
        self.assertIn(b"at byte 0", self.tuff(1, "inspect", "bad.safetensors").stderr)

    def sparse(self, name, count, size, dtype="U8"):
        """A safetensors file of zeros that takes no room on the disk."""
        width = {"U8": 1, "F32": 4}[dtype]
        header = json.dumps({f"t{i}": {"dtype": dtype, "shape": [size // width], "data_offsets": [i * size, (i + 1) * size]}
                             for i in range(count)}).encode()
        with open(self.folder / name, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + count * size)

    def peak_mib(self, *arguments):
        process = subprocess.Popen([TUFF, "convert", *arguments], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   env={**os.environ, "TUFF_DEVICE": "CPU"})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, arguments)
        return usage.ru_maxrss / 1024

    def test_memory_of_long_conversions(self):
        self.sparse("small.safetensors", 1, 1000)
        self.sparse("big.safetensors", 1, 512 << 20)
        least = self.peak_mib("small.safetensors", "a.npz")
        for arguments in (["big.safetensors", "a.npz"], ["a.npz", "big.safetensors"],
                          ["big.safetensors", "big.safetensors"]):
            self.assertLess(self.peak_mib(*arguments), least + 64, arguments)
        with zipfile.ZipFile(self.folder / "a.npz") as archive:  # NumPy would read it whole
            self.assertEqual((archive.testzip(), archive.getinfo("t0.npy").file_size), (None, (512 << 20) + 128))
        # What is computed is computed one after the other.
        self.sparse("big.safetensors", 8, 64 << 20, "F32")
        self.assertLess(self.peak_mib("big.safetensors", "a.npz", "--dtype", "float16"), least + 64 + 32 + 64)

    def killed(self, how):
        """A conversion of half a GiB that is killed when it has begun; its exit code, and what it says."""
        self.sparse("big.safetensors", 1, 512 << 20)
        (self.folder / "a.npz").write_bytes(b"old")
        process = subprocess.Popen([TUFF, "convert", "big.safetensors", "a.npz", "--compress"], cwd=self.folder,
                                   stderr=subprocess.PIPE, env={**os.environ, "TUFF_DEVICE": "CPU"})
        while process.poll() is None and not any(".tmp." in p.name and p.stat().st_size for p in self.folder.iterdir()):
            time.sleep(0.005)
        process.send_signal(how)
        said = process.communicate(timeout=60)[1].decode()
        self.assertEqual((self.folder / "a.npz").read_bytes(), b"old")
        return process.returncode, said

    def test_an_interrupt_leaves_nothing_behind(self):
        self.assertEqual(self.killed(signal.SIGINT), (130, "tuff: interrupted; a.npz is as it was\n"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.npz", "big.safetensors"])

    def test_what_a_killed_process_left_is_removed_by_the_next(self):
        self.assertEqual(self.killed(signal.SIGKILL)[0], -signal.SIGKILL)
        self.assertEqual(len(list(self.folder.iterdir())), 3)
        self.sparse("big.safetensors", 1, 1000)
        self.peak_mib("big.safetensors", "a.npz")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.npz", "big.safetensors"])

    def test_what_is_no_regular_file(self):
        os.mkfifo(self.folder / "pipe")  # without a writer: who opens it to read would wait forever
        self.assertIn(b"a pipe", self.tuff(1, "inspect", "pipe").stderr)
        self.assertIn(b"a folder", self.tuff(1, "inspect", ".").stderr)
        self.assertIn(b"a device", self.tuff(1, "inspect", "/dev/zero").stderr)

    def test_nothing_that_a_file_says_commands_the_terminal(self):
        evil = "\x1b]0;t\x07\n\r\x7f\u009b31m\u202e\u2066"
        header = {evil: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "__metadata__": {evil: evil, "é": "ü"}}
        text = json.dumps(header, ensure_ascii=False).encode()
        (self.folder / "evil.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0")
        index = {"weight_map": {"a": evil.replace("\x7f", "") + ".safetensors"}}
        (self.folder / "evil.safetensors.index.json").write_text(json.dumps(index))
        (self.folder / "evil\x1b[2J.npz").write_bytes(b"PK\5\6" + bytes(18))
        shown = [self.tuff(0, "inspect", "evil.safetensors").stdout,
                 self.tuff(1, "inspect", "evil.safetensors.index.json").stderr,
                 self.tuff(0, "inspect", "evil\x1b[2J.npz").stdout,
                 self.tuff(1, "convert", "evil.safetensors", "\x1b[2J/a.npz").stderr,
                 self.tuff(0, "convert", "evil.safetensors", "\x1b[2J.npz").stdout]
        for output in shown:
            self.assertNotRegex(output.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
        self.assertIn(rb"\x1b]0;t\x07\x0a\x0d\x7f\u009b31m\u202e\u2066  U8", shown[0])
        self.assertIn("é: \"ü\"", shown[0].decode())

    def test_small_files_take_little_memory(self):
        # One key of 60 KB named 10^5 times, a tensor of 64 axes made 10^5 times, 10^7 remembered and plain values.
        key = b"X" + (60000).to_bytes(4, "little") + b"a" * 60000
        storage = b"(X\7\0\0\0storagectorch\nFloatStorage\n" + key + b"X\3\0\0\0cpuK\1t"
        tensor = b"ctorch._utils\n_rebuild_tensor_v2\nq\1(" + storage + b"QK\0(" + b"K\1" * 64 + b"tq\2h\2\x89Ntq\3"
        pickles = {"storages": storage + b"q\0" + b"h\0Q0" * 100000, "tensors": tensor + b"h\1h\3R0" * 100000,
                   "memo": b"K\1" + b"\x94" * 10_000_000, "values": b"K\0000" * 10_000_000}
        for name, body in pickles.items():
            with zipfile.ZipFile(self.folder / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a/data.pkl", b"\x80\2" + body + b"N.")
            run = subprocess.run(["bash", "-c", f"ulimit -v {1 << 20}; exec \"$0\" inspect a.pt", TUFF], cwd=self.folder,
                                 capture_output=True, check=False, env={**os.environ, "TUFF_DEVICE": "NULL"})
            self.assertNotIn(b"out of memory", run.stderr, name)
            self.assertEqual(run.returncode, 0 if name == "storages" else 1, (name, run.stderr))

    def test_a_file_that_cannot_grow_leaves_nothing_behind(self):
        header = json.dumps({"a": {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}}).encode()
        (self.folder / "big.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(1 << 20))
        run = subprocess.run(  # write() fails as on a full disk: EFBIG once files reach 4 KiB
            ["bash", "-c", "ulimit -f 4; trap '' XFSZ; exec \"$0\" convert big.safetensors out.npz", TUFF],
            cwd=self.folder, capture_output=True, check=False,
            env={**os.environ, "TUFF_DEVICE": "NULL", "TUFF_CACHE": "0"})
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(b"cannot write", run.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["big.safetensors"])

    def test_a_full_disk(self):
        mount = "mount -t tmpfs -o size=64k none small"
        (self.folder / "small").mkdir()
        own = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        if subprocess.run([*own, mount], cwd=self.folder, capture_output=True, check=False).returncode != 0:
            self.skipTest("no file system of 64 KiB may be mounted here")
        header = json.dumps({"a": {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}}).encode()
        contents = numpy.random.default_rng(3).bytes(1 << 20)  # which no compression makes fit
        (self.folder / "big.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + contents)
        for name in ("out.npz", "out.npy", "out.safetensors"):
            run = subprocess.run(
                [*own, f"{mount}; printf old > small/{name}; \"$0\" convert big.safetensors small/{name}; "
                 f"echo rc $?; ls small; cat small/{name}", TUFF], cwd=self.folder, capture_output=True, check=False,
                env={**os.environ, "TUFF_DEVICE": "NULL", "TUFF_CACHE": "0"})
            self.assertEqual(run.stdout.decode(), f"rc 1\n{name}\nold", run.stderr)
            self.assertRegex(run.stderr.decode(), f"'small/{name}': at byte [0-9]+: No space left.*; free space")


if __name__ == "__main__":
    TUFF, DATA = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve() / "pytorch"
    if numpy is None:
        print("skipped: this Python has no NumPy (python3-numpy)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
