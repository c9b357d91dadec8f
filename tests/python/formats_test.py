"""Files of NumPy's formats and of safetensors, both ways, over all dtypes, shapes and layouts."""
import io
import json
import math
import pathlib
import struct
import tempfile
import unittest
import zipfile

import numpy as np

import tuff

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64"]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7, 5, 3), (1, 1, 4, 1), (257, 129)]
# As the format's text names them (github.com/huggingface/safetensors, "Format").
SAFETENSORS = {"bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32",
               "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
               "float32": "F32", "float64": "F64"}
RNG = np.random.default_rng(11)


def values(dtype, shape):
    """Bits of every kind: extremes, NaN with payloads, subnormals, both zeros."""
    count = math.prod(shape)
    if dtype == "bool":
        return RNG.integers(0, 2, count).astype(bool).reshape(shape)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(RNG.bytes(count * size), np.dtype(dtype)).reshape(shape).copy()


def named_arrays(dtypes=DTYPES):
    return {f"{d}/{'x'.join(map(str, s))}": values(d, s) for d in dtypes for s in SHAPES}


def layouts(a):
    """The same values, and others, as NumPy may hold them."""
    yield "fortran", np.asfortranarray(a)
    yield "reversed", a[::-1]
    yield "stepped", a[::2, ..., ::-1]
    yield "transposed", a.T
    yield "middle", np.moveaxis(a, 0, 1)
    yield "broadcast", np.broadcast_to(a[:1], (4,) + a.shape[1:])
    yield "big-endian", a.astype(a.dtype.newbyteorder(">"))
    yield "big-endian fortran", np.asfortranarray(a.astype(a.dtype.newbyteorder(">")))


class Format(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_same_bits(self, got, want, name):
        want = np.ascontiguousarray(want).astype(want.dtype.newbyteorder("="), copy=False).reshape(want.shape)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), name)
        self.assertEqual(np.ascontiguousarray(got).tobytes(), want.tobytes(), name)


class Npy(Format):
    def test_tuff_to_numpy(self):
        for name, a in named_arrays().items():
            path = self.folder / "a.npy"
            tuff.save(path, {"a": tuff.tensor(a)})
            self.assert_same_bits(np.load(path), a, name)
            with open(path, "rb") as file:  # and as a mapping, which needs the alignment of the format
                self.assertEqual(np.lib.format.read_magic(file), (1, 0))
                np.lib.format.read_array_header_1_0(file)
                self.assertEqual(file.tell() % 64, 0)
            if a.size:
                self.assert_same_bits(np.load(path, mmap_mode="r"), a, name)

    def test_numpy_to_tuff(self):
        for name, a in named_arrays().items():
            np.save(self.folder / "a.npy", a)
            self.assert_same_bits(tuff.load(self.folder / "a.npy")["a"].numpy(), a, name)

    def test_layouts(self):
        for dtype in DTYPES:
            for layout, a in layouts(values(dtype, (7, 5, 3))):
                np.save(self.folder / "a.npy", a)
                self.assert_same_bits(tuff.load(self.folder / "a.npy")["a"].numpy(), a, f"{dtype} {layout}")

    def test_views_of_tensors_are_written_as_they_read(self):
        a = values("int32", (7, 5, 3))
        t = tuff.tensor(a)
        for name, view, want in [("T", t.permute(2, 1, 0), a.T), ("step", t[::2, :, ::-1], a[::2, :, ::-1]),
                                 ("expand", t[:1].expand(4, 5, 3), np.broadcast_to(a[:1], (4, 5, 3))),
                                 ("lazy", t[2] + 1, a[2] + 1), ("blob", tuff.from_blob(a[:, 1:, ::2]), a[:, 1:, ::2])]:
            tuff.save(self.folder / "a.npy", {"a": view})
            self.assert_same_bits(np.load(self.folder / "a.npy"), want, name)

    def test_versions_of_the_header(self):
        a = values("float32", (2, 3))
        for version in [(1, 0), (2, 0), (3, 0)]:
            with open(self.folder / "a.npy", "wb") as file:
                np.lib.format.write_array(file, a, version=version)
            self.assert_same_bits(tuff.load(self.folder / "a.npy")["a"].numpy(), a, str(version))

    def test_refused(self):
        refused = {"complex": np.zeros(2, complex), "text": np.array(["a"]), "bytes": np.array([b"a"]),
                   "record": np.zeros(2, [("x", "f4")]), "date": np.zeros(2, "M8[s]"), "object": np.array([None]),
                   "longdouble": np.zeros(2, np.longdouble)}
        for name, a in refused.items():
            np.save(self.folder / "a.npy", a, allow_pickle=True)
            with self.assertRaises(tuff.IoError, msg=name) as raised:
                tuff.load(self.folder / "a.npy")["a"]
            self.assertRegex(str(raised.exception), r"a\.npy.*(is not read|not read)", name)
        with self.assertRaisesRegex(tuff.InvalidArgument, "bfloat16"):
            tuff.save(self.folder / "b.npy", {"a": tuff.ones(2, dtype="bfloat16")})
        self.assertFalse((self.folder / "b.npy").exists())


class Npz(Format):
    def test_both_ways_stored_and_compressed(self):
        arrays = named_arrays()
        for dtype in DTYPES:
            arrays.update({f"{dtype} {layout}": a for layout, a in layouts(values(dtype, (7, 5, 3)))})
        for save, compress in ((np.savez, False), (np.savez_compressed, True)):
            save(self.folder / "numpy.npz", **arrays)
            loaded = tuff.load(self.folder / "numpy.npz")
            self.assertEqual(list(loaded), list(arrays))
            for name, tensor in loaded.items():
                self.assert_same_bits(tensor.numpy(), arrays[name], name)
            tuff.save(self.folder / "tuff.npz", loaded, compress=compress)
            with zipfile.ZipFile(self.folder / "tuff.npz") as archive:
                self.assertIsNone(archive.testzip())
                kinds = {i.compress_type for i in archive.infolist() if i.file_size > 1000}
                self.assertEqual(kinds, {zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED})
            with np.load(self.folder / "tuff.npz") as written:
                self.assertEqual(list(written), list(arrays))
                for name, a in arrays.items():
                    self.assert_same_bits(written[name], a, name)

    def test_a_larger_one(self):
        a = values("float32", (1 << 20, 3))
        np.savez_compressed(self.folder / "a.npz", a=a, b=a.T)
        loaded = tuff.load(self.folder / "a.npz")
        self.assert_same_bits(loaded["b"].numpy(), a.T, "b")
        tuff.save(self.folder / "b.npz", {"a": loaded["a"]}, compress=True)
        with np.load(self.folder / "b.npz") as written:
            self.assert_same_bits(written["a"], a, "a")

    def test_what_is_no_array_is_named(self):
        with zipfile.ZipFile(self.folder / "a.npz", "w") as archive:
            array = io.BytesIO()
            np.save(array, np.ones(2))
            archive.writestr("a.npy", array.getvalue())
            archive.writestr("readme.txt", "no array")
        with self.assertRaisesRegex(tuff.IoError, "readme.txt"):
            tuff.load(self.folder / "a.npz")


def read_safetensors(data):
    """By the format's definition alone: 8 bytes of length, a JSON header, then the tensors without gaps."""
    (length,) = struct.unpack("<Q", data[:8])
    assert length <= 100_000_000 and data[8:9] == b"{"
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=distinct)
    body = data[8 + length:]
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in metadata.values())
    sizes = {"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
             "I64": 8, "U64": 8, "F64": 8}
    tensors, ranges = {}, []
    for name, row in header.items():
        assert set(row) == {"dtype", "shape", "data_offsets"}, row
        begin, end = row["data_offsets"]
        assert end - begin == math.prod(row["shape"]) * sizes[row["dtype"]]
        ranges.append((begin, end))
        tensors[name] = (row["dtype"], tuple(row["shape"]), body[begin:end])
    at = 0
    for begin, end in sorted(ranges):
        assert begin == at, "a gap or an overlap"
        at = end
    assert at == len(body)
    return metadata, tensors, 8 + length


def distinct(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), "a key stands there twice"
    return dict(pairs)


def write_safetensors(path, tensors, metadata=None):
    header, body = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class Safetensors(Format):
    def samples(self):
        out = {}
        for dtype, letters in SAFETENSORS.items():
            for shape in SHAPES:
                a = values("uint16" if dtype == "bfloat16" else dtype, shape)
                out[f"{dtype}.{'x'.join(map(str, shape))}"] = (letters, shape, a.tobytes())
        return out

    def test_read_by_the_definition(self):
        tensors = {}
        for name, (_, shape, data) in self.samples().items():
            tensors[name] = tuff.from_bytes(data, shape, dtype=name.split(".")[0])
        path = self.folder / "a.safetensors"
        tuff.save(path, tensors, metadata={"format": "pt", "text": "\u00fc \"quoted\"\n\t\\ \U0001f600"})
        metadata, found, begin = read_safetensors(path.read_bytes())
        self.assertEqual(metadata, {"format": "pt", "text": "\u00fc \"quoted\"\n\t\\ \U0001f600"})
        self.assertEqual(begin % 8, 0)
        self.assertEqual(found, self.expected(tensors))

    def expected(self, tensors):
        out = {}
        for name, t in tensors.items():
            raw = bytearray(t.nbytes)
            t.copy_to(raw)
            out[name] = (SAFETENSORS[name.split(".")[0]], t.shape, bytes(raw))
        return out

    def test_what_was_written_by_the_definition(self):
        samples = self.samples()
        write_safetensors(self.folder / "a.safetensors", samples, {"by": "the test"})
        loaded = tuff.load(self.folder / "a.safetensors")
        self.assertEqual(loaded.metadata, {"by": "the test"})
        self.assertEqual(set(loaded), set(samples))
        for name, tensor in loaded.items():
            letters, shape, data = samples[name]
            self.assertEqual((tensor.shape, SAFETENSORS[tensor.dtype.name]), (shape, letters))
            raw = bytearray(len(data))
            tensor.copy_to(raw)
            self.assertEqual(raw, data, name)

    def test_names_that_json_escapes(self):
        names = ["a\"b", "back\\slash", "new\nline", "\u00e4\u00f6", "\U0001f600", "with space", ""]
        path = self.folder / "a.safetensors"
        tuff.save(path, {n: tuff.tensor([i]) for i, n in enumerate(names)})
        self.assertEqual(set(read_safetensors(path.read_bytes())[1]), set(names))
        loaded = tuff.load(path)
        self.assertEqual({n: loaded[n].item() for n in loaded}, {n: i for i, n in enumerate(names)})


if __name__ == "__main__":
    unittest.main()
