"""PyTorch's checkpoints and its memory: tuff reads what torch.save wrote, and both share by DLPack."""
import collections
import gc
import math
import pathlib
import pickle
import sys
import tempfile
import unittest
import zipfile

import numpy as np

import tuff

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
SHAPES = [(), (0,), (1,), (3, 0, 2), (7, 5, 3), (1, 1, 4, 1), (257, 129)]
torch.manual_seed(5)


def values(dtype, shape):
    if dtype == "bool":
        return torch.rand(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        low, high = torch.iinfo(getattr(torch, dtype)).min, torch.iinfo(getattr(torch, dtype)).max
        return torch.randint(low, high, shape, dtype=getattr(torch, dtype))
    t = (torch.randn(shape) * 100).to(getattr(torch, dtype))
    if t.numel() > 3:
        t.view(-1)[:4] = torch.tensor([math.nan, math.inf, -math.inf, -0.0])
    return t


def bits(t):
    """Row-major bytes of either library's tensor."""
    if isinstance(t, tuff.Tensor):
        raw = bytearray(t.nbytes)
        t.copy_to(raw)
        return bytes(raw)
    t = t.detach().contiguous().clone()
    return bytes(t.storage().untyped())


def flat(value, path=""):
    """Names as tuff gives them: keys and positions joined by dots."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from flat(item, f"{path}.{i}" if path else str(i))


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "a.pt"

    def assert_loads(self, value, **options):
        torch.save(value, self.path, **options)
        loaded = tuff.load(self.path)
        want = dict(flat(value))
        self.assertEqual(list(loaded), [name or "a" for name in want])
        for (name, t), got in zip(want.items(), loaded.values()):
            self.assertEqual((got.dtype.name, got.shape), (str(t.dtype).split(".")[1], tuple(t.shape)), name)
            self.assertEqual(bits(got), bits(t), name)
        return loaded

    def test_one_tensor_of_every_dtype_and_shape(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                self.assert_loads(values(dtype, shape))

    def test_protocols_of_pickle(self):
        value = {"x": values("float32", (2, 3)), "n": 1 << 40, "f": 0.5, "t": (1, "a", None, True), "big": "x" * 300}
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            loaded = self.assert_loads(value, pickle_protocol=protocol)
            self.assertEqual(loaded.metadata, {"n": 1 << 40, "f": 0.5, "t.0": 1, "t.1": "a", "t.2": None, "t.3": True,
                                               "big": "x" * 300})

    def test_views_that_share_a_storage(self):
        for dtype in ("bool", "bfloat16", "int32", "float64"):  # of every size
            base = values(dtype, (6, 5, 4))
            self.assert_loads({
                "base": base, "transposed": base.transpose(0, 2), "permuted": base.permute(1, 2, 0), "row": base[1],
                "column": base[:, :, 3], "part": base[1:, ::2, 1:3], "stepped": base[::3, 1::3],
                "expanded": base[0, 0].expand(2, 4), "element": base[2, 3, 1], "empty": base[:, :0],
                "tail": base.flatten()[101:], "diagonal": base[0].diagonal(), "again": base,
                "unsqueezed": base[:, None, 2:3, :, None]})

    def test_overlapping_elements_are_refused(self):
        torch.save({"w": torch.arange(5.0).unfold(0, 3, 1)}, self.path)
        with self.assertRaisesRegex(tuff.IoError, "'w' has overlapping elements"):
            tuff.load(self.path)["w"]

    def test_nested_dictionaries_and_lists(self):
        x = values("float32", (2,))
        self.assert_loads(collections.OrderedDict(
            a=x, b={"c": [x + 1, (x + 2, {"d": x + 3})], 7: x + 4}, e=collections.OrderedDict(f=torch.nn.Parameter(x))))

    def modules(self):
        nn = torch.nn
        yield nn.Linear(3, 4)
        yield nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)), (1, 2, 5, 5)
        yield nn.ModuleDict({"e": nn.Embedding(5, 3), "l": nn.LayerNorm(3), "g": nn.GRU(3, 2, num_layers=2)})
        yield nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
        yield nn.utils.weight_norm(nn.Linear(3, 4))

    def test_state_of_modules_and_optimizers(self):
        for module in self.modules():
            if isinstance(module, tuple):
                module, shape = module
                module(torch.zeros(shape))
            loaded = self.assert_loads(module.state_dict())
            self.assertEqual(list(loaded), list(module.state_dict()))
            self.assert_loads(dict(module.named_parameters()))
            parameters = list(module.parameters())
            for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
                optimizer = make(parameters, lr=0.1, **({"momentum": 0.9} if make is torch.optim.SGD else {}))
                for p in parameters:
                    p.grad = torch.randn_like(p)
                optimizer.step()
                loaded = self.assert_loads({"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
                self.assertEqual(loaded.metadata["optimizer.param_groups.0.lr"], 0.1)
                self.assertEqual(loaded.metadata["epoch"], 3)

    def test_a_model_gives_the_same_answers(self):
        torch.manual_seed(9)
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 3))
        torch.save(model.state_dict(), self.path)
        w = tuff.load(self.path)
        x = torch.randn(5, 6)
        y = tuff.from_dlpack(x).linear(w["0.weight"], w["0.bias"]).layernorm([16], w["1.weight"], w["1.bias"]).gelu()
        y = y.linear(w["3.weight"], w["3.bias"])
        np.testing.assert_allclose(y.numpy(), model(x).detach().numpy(), rtol=2e-5, atol=2e-6)

    def test_what_tuff_has_no_dtype_for(self):
        for dtype in (torch.complex64, torch.complex128):
            torch.save({"fine": torch.ones(2), "z": torch.zeros(2, dtype=dtype)}, self.path)
            with self.assertRaisesRegex(tuff.IoError, "torch.Complex(Float|Double)Storage"):
                tuff.load(self.path)
        torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), self.path)
        with self.assertRaisesRegex(tuff.IoError, r"_rebuild_qtensor|QInt8Storage"):
            tuff.load(self.path)
        torch.save(torch.eye(3).to_sparse(), self.path)
        with self.assertRaisesRegex(tuff.IoError, "_rebuild_sparse_tensor"):
            tuff.load(self.path)

    def test_whole_modules_are_refused_by_name(self):
        torch.save(torch.nn.Linear(2, 2), self.path)
        with self.assertRaisesRegex(tuff.IoError, "'torch.nn.modules.linear.Linear' is refused"):
            tuff.load(self.path)

    def test_legacy_files_are_refused_with_the_remedy(self):
        for value in (torch.ones(3), {"a": torch.ones(3)}, torch.nn.Linear(2, 2).state_dict()):
            torch.save(value, self.path, _use_new_zipfile_serialization=False)
            with self.assertRaisesRegex(tuff.IoError, "before 1.6; save it again"):
                tuff.load(self.path)
        self.path.write_bytes(pickle.dumps({"a": 1}))
        with self.assertRaisesRegex(tuff.IoError, "a.pt"):
            tuff.load(self.path)
        torch.jit.script(torch.nn.Linear(2, 2)).save(str(self.path))
        with self.assertRaises(tuff.IoError):
            tuff.load(self.path)

    def test_archives_are_told_by_what_they_hold(self):
        torch.save({"x": torch.ones(2)}, self.path)
        other = self.path.with_suffix(".weights")
        self.path.rename(other)
        self.assertEqual(tuff.load(other).format, "pytorch")
        with zipfile.ZipFile(other) as archive:
            self.assertTrue(any(n.endswith("data.pkl") for n in archive.namelist()))


def same_memory(t, u):
    return t.data_ptr() == u.data_ptr()


class Sharing(unittest.TestCase):
    def test_every_dtype_both_ways(self):
        for dtype in DTYPES:
            for shape in SHAPES:
                t = values(dtype, shape)
                if dtype == "bool":  # PyTorch 1.13 knows none in DLPack
                    self.assertRaisesRegex(RuntimeError, "Bool", tuff.from_dlpack, t)
                    self.assertRaisesRegex(RuntimeError, "code 6", torch.from_dlpack, tuff.ones(shape, dtype=bool))
                    continue
                u = tuff.from_dlpack(t)
                self.assertEqual((u.dtype.name, u.shape, bits(u)), (dtype, tuple(t.shape), bits(t)))
                v = tuff.from_bytes(bits(t), shape, dtype=dtype)
                w = torch.from_dlpack(v)
                self.assertEqual((w.dtype, tuple(w.shape), bits(w)), (t.dtype, shape, bits(t)))
                if math.prod(shape):
                    self.assertTrue(same_memory(t, u) and same_memory(v, w))

    def test_a_write_is_seen(self):
        t = torch.arange(6.0).reshape(2, 3)
        u = tuff.from_dlpack(t)
        t[0, 0] = 50
        self.assertEqual(u.tolist(), [[50, 1, 2], [3, 4, 5]])
        u.assign(u * 2).realize()
        tuff.synchronize()
        self.assertEqual(t.tolist(), [[100, 2, 4], [6, 8, 10]])
        u[1, ::2] = -1
        u.realize()
        tuff.synchronize()
        self.assertEqual(t.tolist(), [[100, 2, 4], [-1, 8, -1]])
        v = tuff.arange(3).realize()
        w = torch.from_dlpack(v)
        w.add_(10)
        self.assertEqual(v.tolist(), [10, 11, 12])
        v[1] = 7
        v.realize()
        tuff.synchronize()
        self.assertEqual(w.tolist(), [10, 7, 12])

    def test_strided_views(self):
        base = torch.arange(120).reshape(6, 5, 4)
        views = {"transposed": base.transpose(0, 2), "part": base[1:, ::2, 1:3], "element": base[2, 3, 1],
                 "expanded": base[0, 0].expand(3, 4), "column": base[:, :, 3], "empty": base[:, :0], "new": base[:, None]}
        for name, view in views.items():
            u = tuff.from_dlpack(view)
            self.assertEqual((u + 0).tolist(), view.tolist(), name)
            base += 1
            if view.numel() and name != "expanded":
                self.assertEqual((u + 0).tolist(), view.tolist(), name)
        t = tuff.arange(12).reshape(3, 4)
        self.assertEqual(torch.from_dlpack(t.T[::2]).tolist(), t.T[::2].tolist())

    def test_round_trips_keep_the_memory(self):
        t = torch.arange(5, dtype=torch.int16)
        self.assertTrue(same_memory(t, torch.from_dlpack(tuff.from_dlpack(t))))
        u = tuff.arange(5).realize()
        self.assertTrue(same_memory(u, tuff.from_dlpack(torch.from_dlpack(u))))
        a = np.arange(4.0)
        b = torch.from_dlpack(tuff.from_dlpack(torch.from_numpy(a))).numpy()
        self.assertEqual(a.ctypes.data, b.ctypes.data)

    def test_gradients_do_not_pass(self):
        t = torch.ones(2, requires_grad=True)
        self.assertRaises(Exception, tuff.from_dlpack, t)
        u = tuff.ones(2, requires_grad=True).realize()
        self.assertRaises(BufferError, torch.from_dlpack, u)
        self.assertTrue(same_memory(torch.from_dlpack(u.detach()), u))

    def test_complex_and_read_only_are_refused(self):
        self.assertRaisesRegex(tuff.InvalidArgument, "no dtype has code 5", tuff.from_dlpack,
                               torch.zeros(2, dtype=torch.complex64))
        a = np.arange(3.0)
        a.flags.writeable = False
        self.assertRaises(BufferError, torch.from_dlpack, tuff.from_blob(a))

    def test_either_side_may_go_first(self):
        for _ in range(3):
            t = torch.full((1000,), 3.0)
            u = tuff.from_dlpack(t)
            del t
            gc.collect()
            self.assertEqual((u * 2).sum().item(), 6000)
            v = torch.from_dlpack(u)
            del u
            gc.collect()
            self.assertEqual(v.sum().item(), 3000)
            w = tuff.full(1000, 2.0).realize()
            x = torch.from_dlpack(w)
            del w
            gc.collect()
            x += 1
            y = tuff.from_dlpack(x)
            del x
            gc.collect()
            self.assertEqual(y.sum().item(), 3000)

    def test_capsules(self):
        t = torch.ones(3)
        capsule = torch.utils.dlpack.to_dlpack(t)
        u = tuff.from_dlpack(capsule)
        self.assertTrue(same_memory(t, u))
        self.assertRaisesRegex(tuff.InvalidArgument, "taken before", tuff.from_dlpack, capsule)
        capsule = tuff.ones(3).__dlpack__()
        torch.utils.dlpack.from_dlpack(capsule)
        self.assertRaises(RuntimeError, torch.utils.dlpack.from_dlpack, capsule)
        self.assertRaises(tuff.InvalidArgument, tuff.from_dlpack, capsule)

    def test_weights_are_shared_with_a_module(self):
        module = torch.nn.Linear(3, 2)
        weight, bias = (tuff.from_dlpack(p.detach()) for p in module.parameters())
        x = torch.randn(4, 3)
        np.testing.assert_allclose(tuff.from_dlpack(x).linear(weight, bias).numpy(), module(x).detach().numpy(), rtol=1e-5,
                                   atol=1e-6)
        weight.assign(weight * 0).realize()
        tuff.synchronize()
        self.assertEqual(module.weight.tolist(), [[0, 0, 0]] * 2)


class Edges(unittest.TestCase):
    """Functions that have PyTorch's names, forwards and backwards at the ends of their domains and at special values, in
    float32 against PyTorch in float64."""
    VALUES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 0.75, 1.0, -1.0, 1.5, -1.5, 2.0, 3.0, -3.0,
              6.0, 9.0, -9.0, 40.0, -40.0, 1e-30, -1e-30, 1e30, -1e30]
    UNARY = ["asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log1p", "expm1", "log10", "erfc", "erfinv", "lgamma",
             "digamma", "logit", "sinc", "rad2deg", "deg2rad", "frac", "isfinite", "signbit", "nan_to_num", "ravel", "trace", "relu6",
             "selu", "elu", "celu", "hardsigmoid", "hardswish", "hardtanh", "mish", "logsigmoid", "softsign", "tanhshrink", "hardshrink",
             "softshrink", "norm", "amax", "amin", "count_nonzero"]
    BINARY = ["atan2", "hypot", "logaddexp", "xlogy", "copysign", "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge",
              "logical_and", "logical_or", "logical_xor", "isclose"]
    # Where PyTorch says otherwise: at NaN, which it takes for what is cut off; at -inf; beside infinities; at poles.
    VALUES_APART = {"softshrink": np.isnan, "hardswish": lambda x: x == -math.inf, "softsign": np.isinf, "nan_to_num": np.isinf}
    GRADIENTS_APART = {
        **dict.fromkeys(["relu6", "hardsigmoid", "hardtanh", "hardshrink", "softshrink"], np.isnan),
        "hypot": lambda x, y: np.isinf(x) | np.isinf(y) | ((x == 0) & (y == 0)), "atan2": lambda x, y: np.isinf(x) | np.isinf(y) | ((x == 0) & (y == 0)),
        "xlogy": lambda x, y: (x == 0) & (np.isinf(y) | (y == 0)), "copysign": lambda x, y: np.isnan(x) | np.isnan(y) | np.isinf(x),
        "logaddexp": lambda x, y: np.isinf(x) & (x == y), "hardswish": lambda x: ~(np.abs(x) < 1e10) | (x == -3),
        "acosh": lambda x: x < 1, "logit": lambda x: (x < 0) | (x > 1), "lgamma": lambda x: np.isinf(x) | ((x < 0) & (x == np.trunc(x))),
        "digamma": lambda x: np.isinf(x) | ((x < 0) & (x == np.trunc(x))),
    }

    def torch_function(self, name):
        return getattr(torch, name, None) or getattr(torch.nn.functional, name, None) or getattr(torch.Tensor, name)

    def compare(self, name, got, want, arrays, apart, what):
        self.assertEqual(tuple(got.shape), tuple(want.shape), (name, what))
        with np.errstate(over="ignore"):  # infinite where a float is
            a, b = got.numpy(), want.detach().numpy().astype(got.numpy().dtype)
        wrong = ~np.isclose(a, b, rtol=3e-6, atol=3e-7, equal_nan=True)
        if a.shape == arrays[0].shape and apart is not None:
            wrong &= ~apart(*arrays)
        if wrong.any():
            where = [x[wrong] if x.shape == a.shape else x for x in arrays]
            self.fail(f"{name}, {what}: at {where} {a[wrong]}, PyTorch {b[wrong]}")

    def check(self, name, arrays):
        inputs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
        mine = [tuff.tensor(a, dtype="float32", requires_grad=True) for a in arrays]
        dtype = self.torch_function(name)(*[x.detach().float() for x in inputs]).dtype
        want, got = self.torch_function(name)(*inputs), getattr(mine[0], name)(*mine[1:])
        self.assertEqual(got.dtype.name, str(dtype).split(".")[1], name)
        gradients = got.sum().gradient(mine) if want.requires_grad else []
        self.compare(name, got, want, arrays, self.VALUES_APART.get(name), "values")
        if want.requires_grad:
            want.sum().backward()
        for i, g in enumerate(gradients):
            if inputs[i].grad is not None and g is not None:
                self.compare(name, g, inputs[i].grad, arrays, self.GRADIENTS_APART.get(name), f"gradient {i}")

    def test_special_values(self):
        for name in self.UNARY:
            with self.subTest(name):
                self.check(name, [np.array([self.VALUES]) if name == "trace" else np.array(self.VALUES)])

    def test_pairs_of_special_values(self):
        pairs = np.array([(a, b) for a in self.VALUES for b in self.VALUES])
        for name in self.BINARY:
            with self.subTest(name):
                self.check(name, [pairs[:, 0], pairs[:, 1]])


if __name__ == "__main__":
    unittest.main()
