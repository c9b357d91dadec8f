"""ONNX models: described, loaded, called; what is refused, and how."""
import pathlib
import tempfile
import unittest

import numpy as np

import tuff
from onnx_writer import (B, FLOAT, INT64, W, attribute, layer_and_norm, message, model, node, optional_type, perceptron,
                         sequence_type, tensor, tensor_type, typed, value)


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


class Sequences(OnnxTest):
    def sequences(self):
        sequence = sequence_type(tensor_type(FLOAT, ["n"]))
        maybe = optional_type(tensor_type(FLOAT, [2]))
        return self.load(model([node("SequenceInsert", ["s", "x"], ["longer"]), node("Identity", ["o"], ["same"]),
                                node("OptionalHasElement", ["o"], ["has"])],
                               [typed("s", sequence), value("x", FLOAT, None), typed("o", maybe)],
                               [typed("longer", sequence), typed("same", maybe), value("has", 9, [])],
                               opsets=[("", 18)]))

    def test_are_lists_and_none(self):
        m = self.sequences()
        self.assertEqual([(v.type, v.is_sequence, v.is_optional) for v in m.inputs],
                         [("sequence of FLOAT", True, False), ("FLOAT", False, False), ("optional FLOAT", False, True)])
        self.assertEqual((m.inputs[0].dtype, m.inputs[0].shape), (tuff.float32, ("n",)))
        x = np.array([7], np.float32)
        out = m(s=[[1.0, 2.0], tuff.tensor([3.0])], x=x, o=[4.0, 5.0])
        self.assertEqual([t.tolist() for t in out["longer"]], [[1, 2], [3], [7]])
        self.assertEqual((out["same"].tolist(), out["has"].item()), ([4, 5], True))
        for empty in ({}, {"o": None}):
            out = m(s=[], x=x, **empty)
            self.assertEqual([t.tolist() for t in out["longer"]], [[7]])
            self.assertEqual((out["same"], out["has"].item()), (None, False))

    def test_refusals(self):
        m = self.sequences()
        x = np.array([7], np.float32)
        for wanted, s in (("'s'", x), ("'s' is nothing", None), ("element 1 of input 's'", [x, x.astype(np.int64)])):
            with self.assertRaisesRegex(tuff.InvalidArgument, wanted):
                m(s=s, x=x)
        with self.assertRaisesRegex(tuff.Unsupported, "'s' is of type 'sequence of FLOAT'"):
            tuff.onnx.Session(m)


class NarrowTypes(OnnxTest):
    def test_come_in_a_wider_dtype(self):
        m = self.load(model([node("Cast", ["x"], ["y"], attribute("to", 2, 3, 26))], [value("x", FLOAT, [3])],
                            [value("y", 26, [3])], opsets=[("", 25)]))
        self.assertEqual([(v.type, v.dtype) for v in m.outputs], [("INT2", tuff.int8)])
        self.assertEqual(m(x=[1.0, 2.0, 7.0])["y"].tolist(), [1, -2, -1])


class Rewrites(OnnxTest):
    def expected(self, x, scale=3):
        return (x @ W + B - B) / np.sqrt(0.25 + 1e-5) * scale + B

    def test_batch_norms_are_folded_until_parameters_are_asked_for(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        m = self.load(layer_and_norm())
        self.assertEqual(m.description().rewrites, [("batch norms in the layer before", 1)])
        self.assertEqual(tuff.onnx.describe(self.path).rewrites, m.description().rewrites)
        session = tuff.onnx.Session(m)
        for _ in range(3):
            np.testing.assert_allclose(session(x=x)["y"].numpy(), self.expected(x), rtol=1e-5)
        scale = m.parameters["scale"]
        for k in range(4):
            scale.assign(tuff.tensor(np.array([k, k], np.float32), device="CPU"))
            np.testing.assert_allclose(session(x=x)["y"].numpy(), self.expected(x, k), rtol=1e-5)
            np.testing.assert_allclose(m(x=x)["y"].numpy(), self.expected(x, k), rtol=1e-5)
        scale.requires_grad = True
        m(x=x)["y"].sum().backward()
        np.testing.assert_allclose(scale.grad.numpy(), (self.expected(x, 1) - B).sum(0), rtol=1e-5)

    def test_a_model_as_it_is_written(self):
        self.written(layer_and_norm())
        m = tuff.onnx.load(self.path, device="CPU", optimize=False)
        self.assertEqual(m.description().rewrites, [])
        x = np.ones((1, 3), np.float32)
        np.testing.assert_allclose(m(x=x)["y"].numpy(), self.expected(x), rtol=1e-5)


class Sessions(OnnxTest):
    def expect(self, session, x):
        outputs = session(x=x)
        self.assertEqual(list(outputs), ["sum", "relu"])
        np.testing.assert_allclose(outputs["sum"].numpy(), x @ W + B, rtol=1e-6)
        np.testing.assert_allclose(outputs["relu"].numpy(), np.maximum(x @ W + B, 0), rtol=1e-6)
        return outputs

    def batch(self, n, start=0):
        return np.arange(start, start + 3 * n, dtype=np.float32).reshape(n, 3) - 4

    def test_each_shape_has_a_graph(self):
        session = tuff.onnx.Session(self.load(perceptron()), graphs=2)
        for start in range(4):
            for n in (1, 5):
                self.expect(session, self.batch(n, start))
        self.assertEqual((session.why_not_captured, session.stats.replays), ("", 2))
        self.expect(session, self.batch(2))  # the third: the one used first is let go
        self.expect(session, self.batch(5))
        self.assertEqual(session.stats.replays, 3)
        self.expect(session, self.batch(1))
        self.assertEqual(session.stats.replays, 0)

    def test_one_graph_for_extents_that_vary(self):
        session = tuff.onnx.Session(self.load(perceptron()), dynamic={"batch": (1, 9)})
        for i, n in enumerate((3, 1, 9, 4, 2)):
            self.expect(session, self.batch(n, i))
        self.assertEqual((session.why_not_captured, session.stats.replays), ("", 3))
        with self.assertRaisesRegex(tuff.InvalidArgument, "batch.*10|10.*batch"):
            session(x=self.batch(10))
        self.expect(session, self.batch(8))

    def test_held_outputs_keep_their_values(self):
        session = tuff.onnx.Session(self.load(perceptron()))
        held = [(x, session(x=x)) for x in (self.batch(2, i) for i in range(5))]
        for x, outputs in held:
            np.testing.assert_allclose(outputs["sum"].numpy(), x @ W + B, rtol=1e-6)

    def test_parameters_are_used_as_they_are_then(self):
        m = self.load(perceptron())
        session = tuff.onnx.Session(m)
        x = self.batch(2)
        for k in range(4):
            m.parameters["b"].assign(tuff.tensor(np.array([k, -k], np.float32), device="CPU"))
            np.testing.assert_allclose(session(x=x)["sum"].numpy(), x @ W + [k, -k], rtol=1e-6)

    def test_short_integers_may_decide_what_runs(self):
        session = tuff.onnx.Session(self.load(model([node("Reshape", ["x", "shape"], ["y"])],
                                                    [value("x", FLOAT, None), value("shape", INT64, [2])],
                                                    [value("y", FLOAT, None)])))
        for i in range(6):
            x = np.arange(i, i + 6, dtype=np.float32)
            for shape in ([2, 3], [6, 1]):
                y = session(x=x, shape=np.array(shape, np.int64))["y"]
                np.testing.assert_array_equal(y.numpy(), x.reshape(shape))
        self.assertEqual((session.why_not_captured, session.stats.replays), ("", 4))
        kept = tuff.tensor(np.array([3, 2], np.int64), device="CPU")
        for shape in ([3, 2], [1, 6], [3, 2]):  # what it holds at the call counts
            kept.assign(tuff.tensor(np.array(shape, np.int64), device="CPU"))
            self.assertEqual(session(x=x, shape=kept)["y"].shape, tuple(shape))
        with self.assertRaises(tuff.Error):
            session(x=x, shape=np.array([4, 2], np.int64))
        np.testing.assert_array_equal(session(x=x, shape=np.array([2, 3], np.int64))["y"].numpy(), x.reshape(2, 3))

    def test_what_cannot_be_captured(self):
        session = tuff.onnx.Session(self.load(model([node("NonZero", ["x"], ["y"])], [value("x", FLOAT, None)],
                                                    [value("y", 7, None)])))
        for x in ([0, 1, 2], [0, 0, 3], [1, 0, 0]):
            y = session(x=np.array(x, np.float32))["y"]
            self.assertEqual(y.tolist(), [list(np.nonzero(x)[0])])
        self.assertIn("NonZero", session.why_not_captured)

    def test_refusals(self):
        m = self.load(perceptron())
        with self.assertRaisesRegex(tuff.InvalidArgument, "'bach': no input .* did you mean batch"):
            tuff.onnx.Session(m, dynamic={"bach": (1, 2)})
        with self.assertRaisesRegex(tuff.InvalidArgument, "'batch': 5 to 2"):
            tuff.onnx.Session(m, dynamic={"batch": (5, 2)})
        for name in ("3", "?"):  # what an extent is, or that it is not known, is no name
            with self.assertRaisesRegex(tuff.InvalidArgument, "they have batch"):
                tuff.onnx.Session(m, dynamic={name: (1, 2)})
        session = tuff.onnx.Session(m, graphs=1)
        for _ in range(3):
            self.expect(session, self.batch(1))
        for _ in range(3):
            for wanted, inputs in (("x", {}), ("z", {"x": self.batch(1), "z": self.batch(1)}),
                                   ("x", {"x": np.ones((1, 4), np.float32)})):
                with self.assertRaisesRegex(tuff.InvalidArgument, f"'{wanted}'"):
                    session(inputs)
            self.expect(session, self.batch(1))
        self.assertEqual(session.stats.replays, 4)  # what is refused takes no graph's place


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
