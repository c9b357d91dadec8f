"""ONNX models: described, loaded, called; what is refused, and how. Models are written here, message by message."""
import pathlib
import struct
import tempfile
import unittest

import numpy as np

import tuff

FLOAT, INT64, STRING = 1, 7, 8


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A number, a float, or what has a length: bytes and str."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def attribute(name, kind, number, value):
    return message((1, name), (number, value), (20, kind))


def node(op, inputs, outputs, *attributes, domain=""):
    return message(*[(1, i) for i in inputs], *[(2, o) for o in outputs], (4, op), *[(5, a) for a in attributes],
                   (7, domain))


def tensor(name, array):
    kind = {"float32": FLOAT, "int64": INT64}[array.dtype.name]
    return message(*[(1, n) for n in array.shape], (2, kind), (8, name), (9, array.tobytes()))


def value(name, kind, shape):
    extents = [(1, field(2, e) if isinstance(e, str) else b"" if e is None else field(1, e)) for e in shape or ()]
    fields = [(1, kind)] if shape is None else [(1, kind), (2, message(*extents))]
    return message((1, name), (2, field(1, message(*fields))))


def model(nodes, inputs, outputs, initializers=(), opsets=(("", 17),), metadata=()):
    graph = message(*[(1, n) for n in nodes], (2, "g"), *[(5, t) for t in initializers], *[(11, v) for v in inputs],
                    *[(12, v) for v in outputs])
    return message((1, 8), (2, "tests"), (3, "1.0"), (7, graph), *[(8, message((1, d), (2, v))) for d, v in opsets],
                   *[(14, message((1, k), (2, v))) for k, v in metadata])


W = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
B = np.array([1.0, -1.0], np.float32)


def perceptron():
    """z = relu(x W + b), and the untouched sum; outputs in an order that is not the alphabet's."""
    return model([node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["sum"]), node("Relu", ["sum"], ["relu"])],
                 [value("x", FLOAT, ["batch", 3])], [value("sum", FLOAT, ["batch", 2]), value("relu", FLOAT, None)],
                 [tensor("w", W), tensor("b", B)], metadata=[("author", "nobody")])


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.onnx"

    def written(self, contents):
        self.path.write_bytes(contents)
        return self.path

    def load(self, contents):
        return tuff.onnx.load(self.written(contents), device="CPU")


class Models(OnnxTest):
    def test_values_and_order(self):
        m = self.load(perceptron())
        x = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)
        for outputs in (m(x=x), m({"x": x}), m(x=tuff.tensor(x)), m(x=x.tolist())):
            self.assertEqual(list(outputs), ["sum", "relu"])
            np.testing.assert_allclose(outputs["sum"].numpy(), x @ W + B, rtol=1e-6)
            np.testing.assert_allclose(outputs["relu"].numpy(), np.maximum(x @ W + B, 0), rtol=1e-6)
        self.assertEqual(m(x=x[:1])["sum"].shape, (1, 2))  # another batch

    def test_what_a_model_says(self):
        m = self.load(perceptron())
        (x,) = m.inputs
        self.assertEqual((x.name, x.type, x.dtype, x.shape), ("x", "FLOAT", tuff.float32, ("batch", 3)))
        self.assertEqual([(o.name, o.shape) for o in m.outputs], [("sum", ("batch", 2)), ("relu", None)])
        self.assertIn("x", repr(x))
        d = m.description()
        self.assertEqual((d.ir_version, d.producer, d.opsets), (8, "tests 1.0", [("", 17)]))
        self.assertEqual((d.parameters, d.metadata), (8, {"author": "nobody"}))
        self.assertEqual([(o.domain, o.name, o.version, o.count, o.missing) for o in d.operators],
                         [("", "Add", 17, 1, ""), ("", "MatMul", 17, 1, ""), ("", "Relu", 17, 1, "")])

    def test_parameters_are_used_as_they_are_then(self):
        m = self.load(perceptron())
        self.assertEqual(sorted(m.parameters), ["b", "w"])
        np.testing.assert_array_equal(m.parameters["w"].numpy(), W)
        m.parameters["b"].assign(tuff.tensor(np.array([10.0, 20.0], np.float32), device="CPU"))
        x = np.ones((1, 3), np.float32)
        np.testing.assert_allclose(m(x=x)["sum"].numpy(), x @ W + [10, 20], rtol=1e-6)

    def test_parameters_train(self):
        m = self.load(perceptron())
        w, b = m.parameters["w"], m.parameters["b"]
        for p in (w, b):
            p.requires_grad = True
        optimizer = tuff.optim.SGD([w, b], lr=0.05)
        x = tuff.tensor(np.array([[1, 2, 3], [2, -1, 0], [0, 1, 1]], np.float32))
        y = tuff.tensor(np.array([[1, 0], [0, 1], [1, 1]], np.float32))
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (m(x=x)["sum"] - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 4)

    def test_contents_beside_the_model(self):
        outside = message(*[(1, n) for n in W.shape], (2, FLOAT), (8, "w"), (13, message((1, "location"), (2, "w.bin"))),
                          (13, message((1, "offset"), (2, "4"))), (14, 1))
        (self.path.parent / "w.bin").write_bytes(b"skip" + W.tobytes())
        m = self.load(model([node("MatMul", ["x", "w"], ["y"])], [value("x", FLOAT, [1, 3])], [value("y", FLOAT, [1, 2])],
                            [outside]))
        x = np.ones((1, 3), np.float32)
        np.testing.assert_allclose(m(x=x)["y"].numpy(), x @ W, rtol=1e-6)

    def test_one_input_given_under_any_name(self):
        for name in ("self", "inputs", "a b/c:0"):
            m = self.load(model([node("Neg", [name], ["y"])], [value(name, FLOAT, [2])], [value("y", FLOAT, [2])]))
            self.assertEqual(m({name: [1.0, 2.0]})["y"].tolist(), [-1, -2])


class Refusals(OnnxTest):
    def test_inputs(self):
        m = self.load(perceptron())
        x = np.ones((1, 3), np.float32)
        for wanted, inputs in (("x", {}), ("z", {"x": x, "z": x}), ("x", {"x": x.astype(np.int64)}),
                               ("x", {"x": np.ones((1, 4), np.float32)}), ("x", {"x": x[0]})):
            with self.assertRaisesRegex(tuff.InvalidArgument, f"'{wanted}'"):
                m(inputs)
        for wrong in ((x,), ({"x": x}, {"x": x}), ({1: x},)):
            with self.assertRaises(TypeError):
                m(*wrong)
        with self.assertRaisesRegex(TypeError, "'x' is given twice"):
            m({"x": x}, x=x)

    def test_operators_that_there_are_not(self):
        contents = model([node("NoSuchOperator", ["x"], ["y"], domain="com.example"), node("Neg", ["y"], ["z"])],
                         [value("x", FLOAT, [2])], [value("z", FLOAT, [2])], opsets=[("", 17), ("com.example", 1)])
        with self.assertRaisesRegex(tuff.Unsupported, "NoSuchOperator"):
            self.load(contents)
        d = tuff.onnx.describe(self.path)
        missing = {o.name: o.missing for o in d.operators}
        self.assertEqual(missing["Neg"], "")
        self.assertNotEqual(missing["NoSuchOperator"], "")

    def test_files(self):
        with self.assertRaisesRegex(tuff.IoError, "absent"):
            tuff.onnx.load("absent.onnx")
        whole = perceptron()
        with self.assertRaisesRegex(tuff.IoError, "m.onnx: at byte "):
            tuff.onnx.load(self.written(whole[:60]))
        with self.assertRaisesRegex(tuff.IoError, "an ONNX model"):
            tuff.load(self.written(whole))
        with self.assertRaisesRegex(tuff.IoError, "model's folder"):
            outside = message((1, 1), (2, FLOAT), (8, "w"), (13, message((1, "location"), (2, "../w.bin"))), (14, 1))
            self.load(model([node("Neg", ["w"], ["y"])], [], [value("y", FLOAT, [1])], [outside]))

    def test_texts_that_are_no_utf_8(self):
        contents = model([node("Neg", ["x"], ["y"])], [value("x", FLOAT, [1])], [value("y", FLOAT, [1])],
                         metadata=[("key", b"\xff")])
        self.assertEqual(tuff.onnx.describe(self.written(contents)).metadata, {"key": "\ufffd"})


if __name__ == "__main__":
    unittest.main()
