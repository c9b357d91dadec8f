"""Functions and modules written as ONNX models: the checker of the package onnx accepts them, and onnxruntime gives the
same outputs, also for batches of another size. Without these packages what tuff itself reads back is compared."""
import pathlib
import tempfile
import unittest

import numpy as np

import tuff
from tuff import nn

try:
    import onnx
    import onnxruntime
except ImportError:
    onnx = onnxruntime = None

TOLERANCE = 1e-5


class Block(nn.Module):
    """Layer norm before attention and before a perceptron, as in models/gpt_model.h."""

    def __init__(self, width, heads):
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.ln1(x)).split(width, 2))
        mixed = tuff.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(self.fc(self.ln2(x)).gelu("tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary=40, width=32, heads=4, layers=2, context=16):
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.lnf, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight.narrow(0, 0, tokens.shape[1])
        for block in self.blocks:
            x = block(x)
        return self.head(self.lnf(x))


class ConvNet(nn.Module):
    """That of models/digits_trainer.cpp."""

    def __init__(self):
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 16, 5, padding=2)
        self.fc1, self.fc2 = nn.Linear(16 * 7 * 7, 32), nn.Linear(32, 10)

    def forward(self, x):
        h = self.conv2(self.conv1(x).relu().max_pool2d(2)).relu().max_pool2d(2)
        return self.fc2(self.fc1(h.flatten(1)).relu())


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.short = nn.Conv2d(before, after, 1, stride=stride, bias=False) if stride > 1 else None

    def forward(self, x):
        h = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (h + (self.short(x) if self.short else x)).relu()


class ResNet(nn.Module):
    def __init__(self):
        self.stem, self.bn = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8)
        self.stages = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2))
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.bn(self.stem(x)).relu().max_pool2d(3, stride=2, padding=1)
        return self.fc(self.stages(x).mean((2, 3)))


def trained(model, x, targets, steps=3):
    """A few steps, so that parameters and running statistics are no initial values."""
    optimizer = tuff.optim.SGD(model.parameters(), lr=0.05)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        logits = model(x)
        logits.reshape(-1, logits.shape[-1]).cross_entropy(targets.reshape(-1)).backward()
        optimizer.step()
    return model.eval()


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.onnx"
        self.random = np.random.default_rng(1)

    def floats(self, *shape):
        return tuff.tensor(self.random.standard_normal(shape).astype(np.float32))

    def integers(self, high, *shape):
        return tuff.tensor(self.random.integers(0, high, shape))

    def check(self, function, *others, outputs=None):
        """What other programs make of the file, of each list of inputs."""
        names = [v.name for v in tuff.onnx.describe(self.path).inputs]
        if onnx:
            onnx.checker.check_model(str(self.path), full_check=True)
            session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        model = tuff.onnx.load(self.path)
        for given in others:
            wanted = function(*given)
            wanted = [wanted] if isinstance(wanted, tuff.Tensor) else wanted
            arrays = {n: t.numpy() for n, t in zip(names, given, strict=True)}
            found = {"tuff": [t.numpy() for t in model(arrays).values()]}
            if onnx:
                found["onnxruntime"] = session.run(None, arrays)
            for program, values in found.items():
                for w, v in zip(wanted, values, strict=True):
                    with self.subTest(program=program):
                        self.assertEqual(w.numpy().dtype, v.dtype)
                        np.testing.assert_allclose(w.numpy(), v, rtol=TOLERANCE, atol=TOLERANCE)

    def operators(self):
        return {o.name: o.count for o in tuff.onnx.describe(self.path).operators}


class Models(ExportTest):
    def test_gpt(self):
        x, y = self.integers(40, 4, 16), self.integers(40, 4, 16)
        model = trained(Gpt(), x, y)
        tuff.onnx.export(model, x, self.path, dynamic={"tokens": {0: "batch", 1: "time"}}, bounds={"time": (1, 16)})
        self.check(model, (x,), (self.integers(40, 1, 5),), (self.integers(40, 3, 1),))
        used = self.operators()
        self.assertEqual(used["Softmax"], 2)
        self.assertEqual(used["MatMul"], 2 * 6 + 1)  # 4 projections and 2 products of attention each, and the head
        self.assertEqual(used["Gather"], 1)
        self.assertEqual(used["Sigmoid"], 2)
        self.assertEqual(used["LayerNormalization"], 2 * 2 + 1)
        description = tuff.onnx.describe(self.path)
        self.assertEqual(description.inputs[0].shape, ("batch", "time"))
        self.assertEqual(description.outputs[0].shape, ("batch", "time", 40))
        names = {n for n in tuff.onnx.load(self.path).parameters if "." in n}
        self.assertEqual(names, set(model.state_dict()))

    def test_digits(self):
        model = trained(ConvNet(), self.floats(4, 1, 28, 28), self.integers(10, 4))
        x = self.floats(4, 1, 28, 28)
        tuff.onnx.export(model, x, self.path, dynamic={"x": {0: "batch"}})
        self.check(model, (x,), (self.floats(1, 1, 28, 28),), (self.floats(7, 1, 28, 28),))
        used = self.operators()
        self.assertEqual((used["Conv"], used["MaxPool"], used["MatMul"], used["Relu"]), (2, 2, 2, 3))

    def test_resnet(self):
        x = self.floats(4, 3, 32, 32)
        model = trained(ResNet(), x, self.integers(10, 4))
        tuff.onnx.export(model, x, self.path, dynamic={"x": {0: "batch"}})
        self.check(model, (x,), (self.floats(1, 3, 32, 32),), (self.floats(6, 3, 32, 32),))
        used = self.operators()
        self.assertEqual((used["Conv"], used["MaxPool"]), (9, 1))


    def test_windows_there_and_back(self):
        down, up = nn.Conv2d(3, 8, 3, padding=1), nn.ConvTranspose2d(8, 3, 3, stride=2, padding=1, output_padding=1)

        def f(x):
            return up(down(x).relu().avg_pool2d(3, 2, 1, count_include_pad=False)).sigmoid() + x.avg_pool2d(3, 1, 1)
        tuff.onnx.export(f, self.floats(2, 3, 12, 8), self.path, dynamic={"x": {0: "batch"}})
        self.check(f, (self.floats(2, 3, 12, 8),), (self.floats(5, 3, 12, 8),))
        self.assertEqual(self.operators(), {"Add": 3, "AveragePool": 2, "Conv": 1, "ConvTranspose": 1, "Relu": 1,
                                            "Sigmoid": 1})


class Files(ExportTest):
    def test_equal_functions_give_equal_files(self):
        model = ConvNet()
        written = []
        for _ in range(2):
            tuff.onnx.export(model, self.floats(2, 1, 28, 28), self.path, dynamic={"x": {0: "batch"}})
            written.append(self.path.read_bytes())
        self.assertEqual(*written)

    def test_weights_beside_the_model(self):
        model = nn.Linear(64, 32)
        tuff.onnx.export(model, self.floats(1, 64), self.path, external_from=0, input_names=["x"])
        self.assertTrue(self.path.with_name("m.onnx.data").exists())
        self.assertLess(self.path.stat().st_size, 4096)
        self.check(model, (self.floats(1, 64),))

    def test_names(self):
        def both(first, second):
            return first + second, first * second
        a, b = self.floats(2, 3), self.floats(2, 3)
        tuff.onnx.export(both, (a, b), self.path, output_names=["sum", "product"],
                         dynamic={"first": {1: "n"}, "second": {1: "n"}})
        d = tuff.onnx.describe(self.path)
        self.assertEqual([(v.name, v.shape) for v in d.inputs], [("first", (2, "n")), ("second", (2, "n"))])
        self.assertEqual([v.name for v in d.outputs], ["sum", "product"])
        self.check(both, (a, b), (self.floats(2, 9), self.floats(2, 9)))


class Functions(ExportTest):
    def test_of_floats(self):
        x = self.floats(3, 4, 5)
        for f in (lambda x: x.var(1), lambda x: x.logsumexp(-1), lambda x: x.argmax(-1), lambda x: x.cumsum(1),
                  lambda x: x.round(), lambda x: x.clamp(-0.5, 0.5), lambda x: x.erf(), lambda x: x.gelu(),
                  lambda x: x.pad((1, 2, 0, 1), value=0.5), lambda x: x.flip((1, 2)),
                  lambda x: tuff.einsum("bij,bkj->ikb", [x, x + 1]), lambda x: x.matmul(x.transpose(1, 2)),
                  lambda x: x[:, tuff.tensor([3, -1, 0])], lambda x: x.trunc(), lambda x: x.sin() + x.cos(),
                  lambda x: x.abs() ** 1.7, lambda x: x.pow(x.round()), lambda x: 2.5 ** x, lambda x: x % 0.7,
                  lambda x: x // -0.7, lambda x: x.fmod(x.flip(1)), lambda x: x.atan2(x.flip(1)),
                  lambda x: tuff.cat([x, x.flip(1)], 2), lambda x: tuff.stack([x, x * 2], 1),
                  lambda x: x.exp2() + (x * x + 1).log2(), lambda x: (x > 0).any(1), lambda x: x.layernorm((5,))):
            tuff.onnx.export(f, x, self.path, dynamic={"x": {0: "n"}})
            self.check(f, (x,), (self.floats(2, 4, 5),))

    def test_orders(self):
        for x in (self.floats(2, 3, 40).round(), self.floats(2, 300), self.integers(9, 3, 12)):
            for f in (lambda x: x.sort(), lambda x: x.topk(3), lambda x: x.topk(3, 1, False),
                      lambda x: x.argsort(0, True), lambda x: x.kthvalue(2, 0), lambda x: x.median()):
                tuff.onnx.export(f, x, self.path)
                self.check(f, (x,))
                self.assertEqual(self.operators()["TopK"], 1)

    def test_sequences(self):
        x = self.floats(6, 2, 5)
        for cls in (nn.RNN, nn.GRU, nn.LSTM):
            layer = cls(5, 8, num_layers=2, bidirectional=True).eval()

            def flat(x):
                y, states = layer(x)
                return [y, *states] if isinstance(states, tuple) else [y, states]
            tuff.onnx.export(layer, x, self.path)
            self.check(flat, (x,))
            self.assertEqual(self.operators()[cls.__name__], 4)

            def of_lengths(x):
                return layer(x, lengths=[6, 3])[0]
            tuff.onnx.export(of_lengths, x, self.path)
            self.check(of_lengths, (x,))
            self.assertEqual(self.operators()["Scan"], 4)

    def test_loops(self):
        def f(x, h):
            step = lambda states, rows: ([states[0] * 0.5 + rows[0].tanh()], [states[0] * 2 + rows[0]])
            ends, outputs = tuff.scan(step, [h], [x])
            back = tuff.scan(step, [ends[0]], [outputs[0]], reverse=True)
            return [*back[0], *back[1]]
        given = self.floats(6, 2, 5), self.floats(2, 5)
        tuff.onnx.export(f, given, self.path)
        self.check(f, given)
        self.assertEqual(self.operators()["Scan"], 2)

    def test_losses(self):
        def loss(logits, target):
            return logits.cross_entropy(target)
        axes = {"logits": {0: "n"}, "target": {0: "n"}}
        given = self.floats(3, 6), tuff.tensor(np.array([1, -100, 5]))
        tuff.onnx.export(loss, given, self.path, dynamic=axes)
        self.check(loss, given, (self.floats(2, 6), tuff.tensor(np.array([-100, 2]))))

    def test_of_integers(self):
        for dtype in (np.int32, np.int64, np.uint8, np.int8, np.uint32):
            x = tuff.tensor(self.random.integers(0, 60, (3, 4)).astype(dtype))
            for f in (lambda x: x + x * 3, lambda x: x // 3, lambda x: x % 5, lambda x: (x & 6) | 1, lambda x: ~x,
                      lambda x: (x << 2) + (x >> 1), lambda x: x.max(1), lambda x: x < 7, lambda x: x.sum(0),
                      lambda x: tuff.where(x > 9, x, 9 - x)):
                tuff.onnx.export(f, x, self.path, dynamic={"x": {0: "n"}})
                self.check(f, (x,))


class Draws(ExportTest):
    def test_are_of_the_runtime(self):
        def f(x):
            return [x + tuff.rand(1000), tuff.rand(1000), tuff.randint(0, 9, 1000), tuff.randn(1000)]
        x = tuff.zeros(1000)
        tuff.onnx.export(f, x, self.path, draws=True)
        programs = [lambda: [t.numpy() for t in tuff.onnx.load(self.path)(x=x).values()]]
        if onnx:
            onnx.checker.check_model(str(self.path), full_check=True)
            session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
            programs.append(lambda: session.run(None, {"x": x.numpy()}))
        for run in programs:
            a, b, whole, normal = run()
            self.assertFalse(np.array_equal(a, b))
            self.assertFalse(np.array_equal(a, run()[0]))
            self.assertTrue((0 <= a).all() and (a < 1).all() and abs(a.mean() - 0.5) < 0.1)
            self.assertEqual(set(whole.tolist()), set(range(9)))
            self.assertTrue(abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.2)

    def test_dropout_in_training_mode(self):
        drop, x = nn.Dropout(0.25).train(), tuff.ones(1000)
        tuff.onnx.export(drop, x, self.path, draws=True)
        kept = tuff.onnx.load(self.path)({tuff.onnx.describe(self.path).inputs[0].name: x}).popitem()[1].numpy()
        np.testing.assert_allclose(np.unique(kept), [0, 4 / 3], rtol=1e-6)
        self.assertTrue(0.15 < (kept == 0).mean() < 0.35)


class Refusals(ExportTest):
    def refused(self, error, text, *args, **kwargs):
        with self.assertRaisesRegex(error, text):
            tuff.onnx.export(*args, self.path, **kwargs)
        self.assertFalse(self.path.exists())

    def test_what_no_model_holds(self):
        x = self.floats(2, 3)
        self.refused(tuff.Unsupported, "random numbers are drawn: use evaluation", lambda x: x + tuff.rand(2, 3), x)
        self.refused(tuff.Unsupported, "bits", lambda x: x.bitcast(tuff.int32), x)
        self.refused(tuff.InvalidArgument, "stands for", lambda x: x * x.sum().item(), x)
        self.refused(tuff.InvalidArgument, "returned a dict", lambda x: {"y": x}, x)
        self.refused(tuff.InvalidArgument, "returned a list with a float", lambda x: [x, 1.0], x)

    def test_training_mode_is_refused_and_undone(self):
        norm = nn.BatchNorm2d(3).train()
        self.refused(tuff.Unsupported, "evaluation mode", norm, self.floats(2, 3, 4, 4))
        np.testing.assert_array_equal(norm.running_mean.numpy(), np.zeros(3))

    def test_names_and_axes(self):
        x = self.floats(2, 3)
        self.refused(tuff.InvalidArgument, "'z', which is no input: x", lambda x: x, x, dynamic={"z": {0: "n"}})
        self.refused(tuff.InvalidArgument, "axis 2 .* has 2 axes", lambda x: x, x, dynamic={"x": {2: "n"}})
        self.refused(tuff.InvalidArgument, "'m', which is no name", lambda x: x, x, bounds={"m": (1, 2)})
        self.refused(tuff.InvalidArgument, "is 2, outside of 'n' in 3..4", lambda x: x, x, dynamic={"x": {0: "n"}},
                     bounds={"n": (3, 4)})
        self.refused(tuff.InvalidArgument, "2 output names for 1", lambda x: x, x, output_names=["a", "b"])
        self.refused(tuff.InvalidArgument, "two inputs or outputs are named 'x'", lambda x: x, x, output_names=["x"])
        self.refused(tuff.InvalidArgument, "depends on its value", lambda x: x[:2] if x.shape[0] > 2 else x, x,
                     dynamic={"x": {0: "n"}})


if __name__ == "__main__":
    unittest.main()
