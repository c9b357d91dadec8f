#!/usr/bin/env python3
"""`tuff inspect` and `tuff run` of ONNX models from outside.

Usage: onnx_test.py PATH_OF_TUFF WRITER_FOLDER [unittest options]
WRITER_FOLDER has onnx_writer.py. Exit code 77 without NumPy, which reads what was written.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("skipped: NumPy is not there (python3-numpy)")
    sys.exit(77)

TUFF = onnx = None
X = numpy.array([[1, 2, 3], [-4, 5, -6]], numpy.float32)


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "m.onnx").write_bytes(onnx.perceptron())
        numpy.save(self.folder / "x.npy", X)

    def tuff(self, code, *arguments):
        env = {**os.environ, "TUFF_DEVICE": "CPU", "TUFF_CACHE_DIR": str(self.folder / "cache")}
        result = subprocess.run([TUFF, *map(str, arguments)], capture_output=True, cwd=self.folder, env=env,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout.decode() if code == 0 else result.stderr.decode()

    def rows(self, *arguments):
        return [json.loads(line) for line in self.tuff(0, *arguments, "--json").splitlines()]


class Inspect(OnnxTest):
    def test_a_model(self):
        text = self.tuff(0, "inspect", "m.onnx")
        for wanted in (r"m.onnx: onnx, IR version 8, 8 parameters, written by tests 1.0", r"  x  FLOAT  \(batch, 3\)",
                       r"  relu  FLOAT  of any rank", r"  ai.onnx  MatMul  17       1$", r"  author: nobody"):
            self.assertRegex(text, f"(?m)^{wanted}")
        rows = self.rows("inspect", "m.onnx")
        self.assertEqual([r["event"] for r in rows],
                         ["input", "output", "output", "opset", "operator", "operator", "operator", "metadata", "done"])
        self.assertEqual(rows[0], {"event": "input", "name": "x", "type": "FLOAT", "dtype": "float32",
                                   "shape": ["batch", "3"]})
        self.assertEqual(rows[2]["shape"], None)
        self.assertEqual((rows[-1]["format"], rows[-1]["parameters"], rows[-1]["missing"]), ("onnx", 8, 0))

    def test_what_is_folded(self):
        (self.folder / "norm.onnx").write_bytes(onnx.layer_and_norm())
        self.assertIn("\n  1 batch norms in the layer before\n", self.tuff(0, "inspect", "norm.onnx"))
        self.assertIn({"event": "rewrite", "rule": "batch norms in the layer before", "count": 1},
                      self.rows("inspect", "norm.onnx"))
        folded, written = (self.rows("run", "norm.onnx", "--input", "x=x.npy", *o) for o in ([], ["--no-optimize"]))
        self.assertAlmostEqual(folded[0]["mean"], written[0]["mean"], places=4)

    def test_what_is_missing(self):
        evil = onnx.model([onnx.node("No\x1b[2JSuch", ["x"], ["y"], domain="d")], [onnx.value("x", 1, [2])],
                          [onnx.value("y", 1, None)], opsets=[("", 17), ("d", 1)])
        (self.folder / "evil.onnx").write_bytes(evil)
        text = self.tuff(0, "inspect", "evil.onnx")
        self.assertIn("operators, 1 missing", text)
        self.assertRegex(text, r"(?m)^  d  +No\\x1b\[2JSuch  1  +1  +missing: ")
        self.assertNotIn("\x1b", text)
        self.assertNotEqual(self.rows("inspect", "evil.onnx")[4]["missing"], None)
        error = self.tuff(1, "run", "evil.onnx", "--input", "x=x.npy")
        self.assertIn("Such", error)
        self.assertNotIn("\x1b", error)

    def test_a_damaged_one(self):
        (self.folder / "m.onnx").write_bytes(onnx.perceptron()[:60])
        self.assertRegex(self.tuff(1, "inspect", "m.onnx"), "m.onnx: at byte ")


class Run(OnnxTest):
    def test_outputs(self):
        text = self.tuff(0, "run", "m.onnx", "--input", "x=x.npy", "--output", "out")
        wanted = X @ onnx.W + onnx.B
        got = numpy.load(self.folder / "out/sum.npy")
        self.assertEqual(got.dtype, numpy.float32)
        numpy.testing.assert_allclose(got, wanted, rtol=1e-6)
        numpy.testing.assert_allclose(numpy.load(self.folder / "out/relu.npy"), numpy.maximum(wanted, 0), rtol=1e-6)
        self.assertRegex(text, r"(?m)^sum: float32 \(2, 2\)  min -5.75  mean 0.3125  max 5  out/sum.npy$")
        self.assertRegex(text, r"(?m)^\d+\.\d+ ms$")

    def test_rows_and_times(self):
        rows = self.rows("run", "m.onnx", "--input", "x=x.npy", "--repeat", 3)
        self.assertEqual([r["event"] for r in rows], ["output", "output", "done"])
        self.assertEqual((rows[0]["name"], rows[0]["shape"], rows[0]["file"]), ("sum", [2, 2], None))
        self.assertAlmostEqual(rows[0]["mean"], float((X @ onnx.W + onnx.B).mean()), places=5)
        self.assertEqual((rows[-1]["device"], rows[-1]["runs"]), ("CPU", 3))
        self.assertGreater(rows[-1]["ms_median"], 0)
        self.assertEqual(rows[-1]["why_not_captured"], "")
        self.assertGreater(rows[-1]["replays"], 0)
        self.assertGreater(rows[-1]["kernels"], 0)
        self.assertRegex(self.tuff(0, "run", "m.onnx", "--input", "x=x.npy", "--repeat", 3),
                         r"ms the first time, with compiling; \d+\.\d+ ms then, the median of 2, \d+ kernels replayed\n")

    def test_made_up_inputs(self):
        first, again = (self.rows("run", "m.onnx", "--input", "x=5x3") for _ in range(2))
        self.assertEqual(first[0]["shape"], [5, 2])
        self.assertEqual(first[0]["mean"], again[0]["mean"])
        self.assertNotEqual(first[0]["min"], first[0]["max"])
        (self.folder / "n.onnx").write_bytes(onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", 7, None)],
                                                        [onnx.value("y", 7, None)]))
        row = self.rows("run", "n.onnx", "--input", "x=4")[0]
        self.assertEqual((row["dtype"], row["shape"], row["min"], row["max"]), ("int64", [4], -1, -1))
        self.assertEqual(self.rows("run", "n.onnx", "--input", "x=0x2")[0]["min"], None)
        (self.folder / "s.onnx").write_bytes(onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", 1, [])],
                                                        [onnx.value("y", 1, None)]))
        self.assertEqual(self.rows("run", "s.onnx", "--input", "x=2.5")[0]["max"], -2.5)
        self.assertIn("1x576x", self.tuff(1, "run", "m.onnx", "--input", "x=1x576x"))  # no shape, so a file
        (self.folder / "7x3").write_bytes((self.folder / "x.npy").read_bytes())  # a file's name all the same
        self.assertEqual(self.rows("run", "m.onnx", "--input", "x=7x3")[0]["shape"], [2, 2])

    def test_what_cannot_be_captured_runs_anew(self):
        (self.folder / "n.onnx").write_bytes(onnx.model([onnx.node("NonZero", ["x"], ["y"])], [onnx.value("x", 1, None)],
                                                        [onnx.value("y", 7, None)]))
        self.assertRegex(self.tuff(0, "run", "n.onnx", "--input", "x=x.npy", "--repeat", 3), "each time anew: .*NonZero")
        self.assertIn("NonZero", self.rows("run", "n.onnx", "--input", "x=x.npy", "--repeat", 3)[-1]["why_not_captured"])

    def test_names_of_files(self):
        names = ["a/b:0", "a_b:0", "..", "é"]
        (self.folder / "n.onnx").write_bytes(onnx.model([onnx.node("Neg", ["x=y"], [n]) for n in names],
                                                        [onnx.value("x=y", 1, None)],
                                                        [onnx.value(n, 1, None) for n in names]))
        self.tuff(0, "run", "n.onnx", "--input", "x=y=x.npy", "--output", "out")
        self.assertEqual(sorted(p.name for p in (self.folder / "out").iterdir()),
                         ["_...npy", "__.npy", "a_b_0.npy", "a_b_0_2.npy"])

    def test_usage(self):
        for wanted, arguments in (("x=FILE is missing: FLOAT (batch, 3)", []),
                                  ("has no input 'y'; it has x; did you mean x?", ["--input", "y=x.npy"]),
                                  ("NAME=FILE or NAME=SHAPE belongs there", ["--input", "x.npy"]),
                                  ("x=9999999999x9999999999: more than", ["--input", "x=9999999999x9999999999"]),
                                  ("given twice", ["--input", "x=x.npy", "--input", "x=x.npy"])):
            self.assertIn(wanted, self.tuff(2, "run", "m.onnx", *arguments))

    def test_sequences_are_for_python(self):
        sequence = onnx.sequence_type(onnx.tensor_type(1, None))
        (self.folder / "q.onnx").write_bytes(onnx.model([onnx.node("Identity", ["s"], ["y"])],
                                                        [onnx.typed("s", sequence)], [onnx.typed("y", sequence)]))
        self.assertRegex(self.tuff(0, "inspect", "q.onnx"), r"(?m)^  s  sequence of FLOAT  of any rank$")
        self.assertIn("call the model from Python", self.tuff(2, "run", "q.onnx", "--input", "s=x.npy"))

    def test_inputs_that_do_not_fit(self):
        for name, array in (("dtype", X.astype(numpy.int32)), ("rank", X[0]), ("extent", X[:, :2])):
            numpy.save(self.folder / f"{name}.npy", array)
            error = self.tuff(1, "run", "m.onnx", "--input", f"x={name}.npy")
            self.assertIn("input 'x'", error)
        numpy.savez(self.folder / "two.npz", a=X, b=X)
        self.assertIn("a file of one tensor, this has 2", self.tuff(1, "run", "m.onnx", "--input", "x=two.npz"))
        self.assertIn("absent.npy", self.tuff(1, "run", "m.onnx", "--input", "x=absent.npy"))


class Gpu(OnnxTest):
    def test_kernels(self):
        *kernels, total = self.rows("gpu", "m.onnx", "--input", "x=x.npy")
        self.assertGreater(len(kernels), 0)
        self.assertTrue(all(row["right"] for row in [*kernels, total]))
        self.assertEqual({row["work"] for row in [*kernels, total]}, {"m.onnx"})
        self.assertEqual(total["launches"], sum(row["launches"] for row in kernels))
        self.assertRegex(self.tuff(0, "gpu", "m.onnx", "--input", "x=9x3"), "(?m)^m.onnx, as .* would run it$")

    def test_usage(self):
        for wanted, arguments in (("x=FILE is missing: FLOAT (batch, 3)", ["m.onnx"]),
                                  ("gemm is neither a workload nor a file", ["gemm"]),
                                  ("take each other's place", ["m.onnx", "matmul", "--sizes", "8"])):
            self.assertIn(wanted, self.tuff(2, "gpu", *arguments))


if __name__ == "__main__":
    TUFF = sys.argv[1]
    sys.path.insert(0, sys.argv[2])
    import onnx_writer as onnx
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
