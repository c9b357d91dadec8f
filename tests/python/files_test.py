"""Tensors in files: what tuff writes NumPy reads, and the reverse."""
import pathlib
import signal
import tempfile
import threading
import time
import unittest

import numpy as np

import tuff

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64"]


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def arrays(self):
        return {f"{d} {shape}": (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(d)
                for d in DTYPES for shape in [(), (0, 3), (2, 3), (1, 7, 1)]}

    def test_numpy_reads_what_was_saved(self):
        arrays = self.arrays()
        tensors = {name: tuff.tensor(a) for name, a in arrays.items()}
        for compress in (False, True):
            tuff.save(self.folder / "a.npz", tensors, compress=compress)
            with np.load(self.folder / "a.npz") as loaded:
                self.assertEqual(list(loaded), list(arrays))
                for name, a in arrays.items():
                    self.assertEqual((loaded[name].dtype, loaded[name].shape), (a.dtype, a.shape))
                    np.testing.assert_array_equal(loaded[name], a)

    def test_what_numpy_saved_is_read(self):
        arrays = self.arrays()
        np.savez(self.folder / "a.npz", **arrays)
        loaded = tuff.load(str(self.folder / "a.npz"))
        self.assertEqual((list(loaded), len(loaded), loaded.format), (list(arrays), len(arrays), "npz"))
        for name, tensor in loaded.items():
            np.testing.assert_array_equal(tensor.numpy(), arrays[name])
        np.save(self.folder / "one.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
        (one,) = tuff.load(self.folder / "one.npy").values()
        np.testing.assert_array_equal(one.numpy(), np.arange(6.0).reshape(2, 3))

    def test_safetensors_keep_tensors_and_texts(self):
        path = self.folder / "a.safetensors"
        x = tuff.tensor([[1.5, 2.5]]).cast(tuff.bfloat16)
        tuff.save(path, {"x": x * 2, "y": tuff.arange(3)}, metadata={"of": "a test"})
        loaded = tuff.load(path)
        self.assertEqual((loaded.format, loaded.metadata), ("safetensors", {"of": "a test"}))
        info = {i.name: (i.type, i.dtype, i.shape, i.size_bytes) for i in loaded.info()}
        self.assertEqual(info, {"x": ("BF16", tuff.bfloat16, (1, 2), 4), "y": ("I32", tuff.int32, (3,), 12)})
        self.assertEqual(loaded["x"].cast(tuff.float32).numpy().tolist(), [[3.0, 5.0]])

    def test_safetensors_of_8_bit_floats(self):
        path = self.folder / "a.safetensors"
        for dtype, code in ((tuff.float8_e4m3fn, "F8_E4M3"), (tuff.float8_e5m2, "F8_E5M2")):
            tuff.save(path, {"x": tuff.tensor([1.5, -4, 0.25], dtype=dtype)})
            loaded = tuff.load(path)
            self.assertEqual([(i.type, i.dtype, i.size_bytes) for i in loaded.info()], [(code, dtype, 3)])
            self.assertEqual(loaded["x"].tolist(), [1.5, -4, 0.25])
        with self.assertRaisesRegex(tuff.InvalidArgument, "float8_e5m2"):
            tuff.save(self.folder / "a.npz", {"x": tuff.ones(2, dtype="float8_e5m2")})

    def test_what_was_not_read_is_saved_unread(self):
        tuff.save(self.folder / "a.safetensors", {"x": tuff.arange(5), "y": tuff.ones(3)})
        loaded = tuff.load(self.folder / "a.safetensors")
        tuff.save(self.folder / "b.npz", {"x": loaded["x"], "z": loaded["y"] * 2})
        with np.load(self.folder / "b.npz") as got:
            self.assertEqual((got["x"].tolist(), got["z"].tolist()), ([0, 1, 2, 3, 4], [2, 2, 2]))
        tuff.save(self.folder / "a.safetensors", loaded)  # over what it is read from
        self.assertEqual(tuff.load(self.folder / "a.safetensors")["y"].tolist(), [1, 1, 1])

    def test_an_interrupt_ends_saving(self):
        path = self.folder / "a.safetensors"
        path.write_bytes(b"old")
        x = tuff.zeros(64 << 20).realize()  # 256 MiB: many pieces

        def interrupt_when_begun():
            while len(list(self.folder.iterdir())) == 1:
                time.sleep(0.001)
            signal.raise_signal(signal.SIGINT)

        watcher = threading.Thread(target=interrupt_when_begun)
        watcher.start()
        with self.assertRaises(KeyboardInterrupt):
            tuff.save(path, {"x": x})
        watcher.join()
        self.assertEqual(([p.name for p in self.folder.iterdir()], path.read_bytes()), (["a.safetensors"], b"old"))

    def test_a_file_is_memory_of_a_disk(self):
        path = self.folder / "numbers"
        numbers = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        path.write_bytes(b"head" + numbers.tobytes())
        t = tuff.from_file(path, (2, 3, 4), dtype=tuff.int32, offset=4)
        self.assertEqual((t.device, t.shape, t.dtype), (f"DISK:{path}", (2, 3, 4), tuff.int32))
        np.testing.assert_array_equal((t.to("CPU") * 2).numpy(), numbers * 2)
        t.copy_from((numbers + 1).tobytes())
        tuff.synchronize()
        self.assertEqual(path.read_bytes(), b"head" + (numbers + 1).tobytes())
        with self.assertRaises(tuff.IoError):
            tuff.from_file(path, (25,), dtype=tuff.int32, offset=4)

    def test_views_of_mapped_files(self):
        path = self.folder / "mapped.npy"
        numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
        np.save(path, numbers)
        t = tuff.load(path, device="CPU", mmap=True)["mapped"]
        self.assertTrue(t.is_realized())
        np.testing.assert_array_equal((t + 1).numpy(), numbers + 1)
        view = t.numpy()
        self.assertFalse(view.flags.writeable)
        raw = tuff.from_file(path, (24,), offset=path.stat().st_size - 96, mmap=True)
        self.assertEqual(raw.device, "CPU")
        np.testing.assert_array_equal(raw.numpy(), numbers.reshape(-1))
        np.testing.assert_array_equal(t.assign(t * 2).numpy(), numbers * 2)
        np.testing.assert_array_equal(np.load(path), numbers)
        np.testing.assert_array_equal(view, numbers)
        computed = (raw + 1).realize()
        path.write_bytes(b"short")
        for act in (raw.numpy, computed.numpy, lambda: raw.sum().item()):
            with self.assertRaises((tuff.IoError, BufferError)) as caught:
                act()
            self.assertIn(str(path), str(caught.exception))
        np.testing.assert_array_equal(t.numpy(), numbers * 2)

    def test_a_dictionary_of_tensors(self):
        d = tuff.TensorDict({"a": tuff.ones(2)})
        d["b"] = tuff.zeros(3)
        self.assertEqual((d.keys(), "b" in d, "c" in d, len(d), d.format), (["a", "b"], True, False, 2, ""))
        del d["a"]
        self.assertEqual(list(d), ["b"])
        for act in (lambda: d["a"], lambda: d.__delitem__("a")):
            self.assertRaises(KeyError, act)
        tuff.save(self.folder / "b.npz", d, metadata={})
        self.assertEqual(d.metadata, {})

    def test_what_cannot_be_is_named(self):
        missing = self.folder / "missing.npz"
        with self.assertRaisesRegex(OSError, "missing.npz"):
            tuff.load(missing)
        (self.folder / "short.npy").write_bytes(b"\x93NUMPY\x01\x00\xff")
        with self.assertRaisesRegex(tuff.IoError, "short.npy"):
            tuff.load(self.folder / "short.npy")
        with self.assertRaisesRegex(ValueError, "a.txt"):
            tuff.save(self.folder / "a.txt", {"x": tuff.ones(1)})
        with self.assertRaisesRegex(TypeError, "not object"):
            tuff.save(self.folder / "a.safetensors", {"x": tuff.ones(1)}, metadata={"k": object()})
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["short.npy"])


if __name__ == "__main__":
    unittest.main()
