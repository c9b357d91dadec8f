"""Modules: registration, names, modes, moves, hooks, containers, copies."""
import copy
import pickle
import typing
import unittest

import numpy as np

import tuff
from tuff import nn, optim


class Block(nn.Module):
    def __init__(self, n):
        self.conv = nn.Conv2d(n, n, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n)

    def forward(self, x):
        return self.norm(self.conv(x)).relu() + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(2), Block(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(2, 1, bias=False)})
        self.scale = nn.Parameter(tuff.full(1, 2.0))
        self.plain = tuff.ones(3)
        self.register_parameter("absent", None)
        self.register_buffer("table", tuff.arange(3), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x.mean([-2, -1])) * self.scale


def names_of(pairs):
    return [name for name, _ in pairs]


class Names(unittest.TestCase):
    def test_of_everything(self):
        net = Net()
        block = ["conv.weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]
        inside = [f"blocks.{i}.{n}" for i in range(2) for n in block]
        heads = ["heads.a.weight", "heads.a.bias", "heads.b.weight"]
        self.assertEqual(list(net.state_dict()), ["scale", *inside, *heads])
        self.assertEqual(names_of(net.named_parameters()), ["scale", *(n for n in inside if "running" not in n), *heads])
        self.assertEqual(names_of(net.named_buffers()), ["table", *(n for n in inside if "running" in n)])
        self.assertEqual(names_of(net.named_children()), ["blocks", "heads"])
        self.assertEqual(names_of(net.named_modules()), [
            "", "blocks", "blocks.0", "blocks.0.conv", "blocks.0.norm", "blocks.1", "blocks.1.conv", "blocks.1.norm",
            "heads", "heads.a", "heads.b"])
        self.assertEqual(names_of(net.named_parameters(prefix="net", recurse=False)), ["net.scale"])
        self.assertIs(net.get_submodule("blocks.1.conv"), net.blocks[1].conv)
        self.assertIs(net.get_parameter("heads.a.bias"), net.heads["a"].bias)
        self.assertRaises(tuff.InvalidArgument, net.get_submodule, "blocks.2")
        self.assertRaises(tuff.InvalidArgument, net.get_parameter, "blocks.0.norm.running_mean")
        self.assertIsNone(net.absent)
        self.assertEqual(net.plain.tolist(), [1, 1, 1])
        self.assertRaises(AttributeError, getattr, net, "nothing")

    def test_of_attributes_that_change(self):
        m = nn.Module()
        m.x = tuff.ones(2, requires_grad=True)
        m.x = tuff.zeros(2)
        self.assertEqual((names_of(m.named_parameters()), m.x.tolist()), (["x"], [0, 0]))
        m.x = 5
        self.assertEqual((m.named_parameters(), m.x), ([], 5))
        m.x = nn.Identity()
        self.assertEqual(names_of(m.named_children()), ["x"])
        del m.x
        self.assertRaises(AttributeError, getattr, m, "x")
        m.y = None
        self.assertRaises(tuff.InvalidArgument, m.register_buffer, "y", tuff.ones(1))
        self.assertRaises(tuff.InvalidArgument, m.register_parameter, "a.b", tuff.ones(1))
        self.assertRaises(TypeError, m.register_module, "z", 3)
        self.assertRaises(NotImplementedError, m, 1)

    def test_a_tensor_of_two_names_counts_once(self):
        net = nn.Module()
        net.a, net.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        net.b.weight = net.a.weight
        self.assertEqual(list(net.state_dict()), ["a.weight", "b.weight"])
        self.assertEqual(names_of(net.named_parameters()), ["a.weight"])
        x = tuff.randn([2, 3])
        self.assertEqual(net.a(x).tolist(), net.b(x).tolist())

    def test_states(self):
        one, other = Net(), Net()
        state = one.state_dict()
        self.assertEqual(other.load_state_dict(state), ([], []))
        x = tuff.randn([1, 2, 4, 4])
        self.assertEqual(one(x).tolist(), other(x).tolist())
        del state["heads.a.bias"]
        state["more"] = tuff.ones(1)
        state["blocks.0.norm.num_batches_tracked"] = tuff.ones((), dtype="int64")
        self.assertRaisesRegex(tuff.InvalidArgument, "'more'", other.load_state_dict, state)
        report = other.load_state_dict(state, strict=False)
        self.assertEqual((report.missing_keys, report.unexpected_keys), (["heads.a.bias"], ["more"]))
        self.assertRaises(tuff.ShapeError, other.load_state_dict, {"scale": tuff.ones(2)}, strict=False)
        self.assertEqual(nn.load_state_dict({"a": tuff.ones(1)}, {}, strict=False).missing_keys, ["a"])

    def test_annotations_are_what_layers_have(self):
        made = {nn.Linear: (2, 3), nn.Conv2d: (2, 3, 1), nn.BatchNorm: (2,), nn.LayerNorm: (2,), nn.RMSNorm: (2,),
                nn.Embedding: (2, 3), nn.Dropout: (0.25,), nn.MultiHeadAttention: (4, 2), nn.Conv1d: (2, 3, 1),
                nn.Conv3d: (2, 3, 1), nn.ConvTranspose1d: (2, 3, 1), nn.ConvTranspose2d: (2, 3, 1), nn.ConvTranspose3d: (2, 3, 1),
                nn.GroupNorm: (2, 4), nn.InstanceNorm: (2,), nn.LayerNorm2d: (2,), nn.EmbeddingBag: (2, 3),
                nn.RNNCell: (2, 3), nn.LSTMCell: (2, 3), nn.GRUCell: (2, 3), nn.TransformerEncoderLayer: (4, 2),
                nn.TransformerDecoderLayer: (4, 2), nn.TransformerEncoder: (nn.TransformerEncoderLayer(4, 2), 1),
                nn.TransformerDecoder: (nn.TransformerDecoderLayer(4, 2), 1), nn.MultiheadAttention: (4, 2),
                nn.Transformer: (4, 2, 1, 1)}
        for cls, args in made.items():
            layer = cls(*args)
            annotated = set(typing.get_type_hints(cls))
            self.assertTrue(annotated, cls)
            for name in annotated:
                getattr(layer, name)
            self.assertLessEqual({*layer._parameters, *layer._buffers, *layer._modules}, annotated)

    def test_states_may_be_rows_of_a_tensor(self):
        x, both = tuff.rand(3, 5, 4), tuff.rand(2, 1, 5, 4)
        layer = nn.LSTM(4, 4)
        self.assertEqual(layer(x, both)[0].tolist(), layer(x, (both[0], both[1]))[0].tolist())
        cell = nn.LSTMCell(4, 4)
        self.assertEqual(cell(x[0], both[:, 0])[0].tolist(), cell(x[0], (both[0, 0], both[1, 0]))[0].tolist())
        self.assertRaisesRegex(tuff.ShapeError, "a state is", layer, x, x[:2])
        self.assertRaises(TypeError, layer, x, x)


class Modes(unittest.TestCase):
    def test_stay_against_the_threads(self):
        x = tuff.ones(1000)
        drop = nn.Dropout(0.5)

        def drops():
            return bool((drop(x) == 0).any())
        self.assertFalse(drops() or drop.training)
        with tuff.TrainingMode():
            self.assertTrue(drops() and drop.training)
            self.assertIs(drop.eval(), drop)
            self.assertFalse(drops() or drop.training)
        drop.train()
        self.assertTrue(drops() and drop.training)
        self.assertFalse(tuff.training())
        with tuff.TrainingMode(False):
            self.assertTrue(drops())

    def test_of_parts(self):
        net = Net().train()
        net.blocks[0].eval()
        net(tuff.rand([2, 2, 4, 4])).realize()
        self.assertEqual(net.blocks[0].norm.running_mean.tolist(), [0, 0])
        self.assertNotEqual(net.blocks[1].norm.running_mean.tolist(), [0, 0])

    def test_hold_for_functions_in_forward(self):
        class Drop(nn.Module):
            def forward(self, x):
                return x.dropout(0.5)
        m = Drop()
        self.assertEqual(m(tuff.ones(1000)).sum().item(), 1000)
        self.assertTrue((m.train()(tuff.ones(1000)) == 0).any())


class Moves(unittest.TestCase):
    def test_are_seen_by_all_who_share(self):
        net = Net()
        weight, bias = net.heads["a"].weight, net.heads["a"].bias
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        before = weight.numpy().copy()
        self.assertIs(net.to("float64"), net)
        self.assertEqual((weight.dtype, net.table.dtype), ("float64", "int32"))
        self.assertTrue(weight.requires_grad)
        np.testing.assert_array_equal(weight.numpy(), before)
        loss = net(tuff.ones((1, 2, 4, 4), dtype="float64")).sum()
        loss.backward()
        optimizer.step()
        self.assertEqual((weight.dtype, bias.dtype), ("float64", "float64"))
        self.assertFalse(np.array_equal(weight.numpy(), before))
        for make, name in ((net.half, "float16"), (net.bfloat16, "bfloat16"), (net.double, "float64"), (net.float, "float32")):
            make()
            self.assertEqual(weight.dtype, name)
        self.assertEqual(net.to("CPU", np.float16).heads["b"].weight.dtype, "float16")
        self.assertEqual(net.to(device="NULL").heads["b"].weight.device, "NULL")
        self.assertRaises(tuff.InvalidArgument, net.to, "int32")
        self.assertRaises(tuff.InvalidArgument, net.to, "nowhere")
        self.assertRaises(TypeError, net.to, 3)


class Gradients(unittest.TestCase):
    def test_many_small_sums_together(self):
        """Gradients of biases and norms are sums over columns, which kernels have beside each other: no more than fit."""
        grads, values = {}, np.random.default_rng(3).standard_normal((2, 2, 12, 16)).astype(np.float32)
        for device in (d for d in tuff.devices() if d.split(":")[0] in ("CPU", "VULKAN")):
            tuff.manual_seed(3)
            model = nn.Sequential(*[nn.TransformerEncoderLayer(16, 2, 32, dropout=0) for _ in range(3)]).to(device)
            x, weights = (tuff.tensor(v, device=device) for v in values)
            (model(x) * weights).mean().backward()
            grads[device] = [p.grad for p in model.parameters()]
            tuff.realize(grads[device])
        for other in grads.values():
            for mine, theirs in zip(grads["CPU"], other, strict=True):
                np.testing.assert_allclose(theirs.numpy(), mine.numpy(), rtol=1e-3, atol=1e-5)


class Use(unittest.TestCase):
    def test_training(self):
        tuff.Tensor.manual_seed(1)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        x = tuff.rand([64, 2]).realize()
        y = (x[:, :1] * x[:, 1:]).realize()
        optimizer = optim.Adam(net.parameters(), lr=0.05)

        @tuff.jit
        def step(x, y):
            optimizer.zero_grad()
            loss = net(x).mse_loss(y)
            loss.backward()
            optimizer.step([loss])
            return loss
        losses = [step(x, y).item() for _ in range(150)]
        self.assertTrue(step.captured)
        self.assertLess(losses[-1], losses[0] / 5)

    def test_gradients(self):
        net = Net()
        net.blocks[0].requires_grad_(False)
        net(tuff.rand([1, 2, 4, 4])).sum().backward()
        self.assertIsNone(net.blocks[0].conv.weight.grad)
        self.assertIsNotNone(net.blocks[1].conv.weight.grad)
        net.zero_grad()
        self.assertIsNone(net.blocks[1].conv.weight.grad)

    def test_apply(self):
        net, seen = Net(), []
        net.apply(seen.append)
        self.assertIs(seen[0], net.blocks[0].conv)
        self.assertIs(seen[-1], net)
        self.assertEqual(len(seen), len(net.modules()))

    def test_hooks(self):
        layer = nn.Linear(tuff.ones((1, 2)))
        seen = []
        look = layer.register_forward_hook(lambda m, args, out: seen.append((m is layer, args[0].tolist(), out.item())))
        twice = layer.register_forward_hook(lambda m, args, out: out * 2)
        more = layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
        x = tuff.tensor([[1.0, 2.0]])
        self.assertEqual(layer(x).item(), 10)
        self.assertEqual(seen, [(True, [[2, 3]], 5)])
        twice.remove()
        more.remove()
        self.assertEqual(layer(x).item(), 3)
        look.remove()
        look.remove()
        layer(x)
        self.assertEqual(len(seen), 2)

    def test_containers(self):
        items = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        items.insert(1, nn.Identity())
        items[0] = nn.Sigmoid()
        items.append(lambda x: x)
        del items[1]
        self.assertEqual([type(m) for m in items], [nn.Sigmoid, nn.Tanh, nn.Function])
        self.assertEqual(names_of(items.named_children()), ["0", "1", "2"])
        self.assertIs(items[-1], items[2])
        self.assertEqual(len(items[:2]), 2)
        chain = nn.Sequential(nn.ReLU(), nn.Flatten(0))
        self.assertIsInstance(chain[:1], nn.Sequential)
        self.assertEqual(chain(tuff.tensor([[-1.0, 2.0]])).tolist(), [0, 2])
        self.assertRaises(TypeError, nn.Sequential, 3)
        named = nn.ModuleDict({"a": nn.ReLU()})
        named["b"] = nn.Tanh()
        self.assertEqual((list(named), list(named.keys()), "b" in named, len(named)), (["a", "b"], ["a", "b"], True, 2))
        self.assertEqual([n for n, m in named.items() if m in list(named.values())], ["a", "b"])
        del named["a"]
        self.assertRaises(KeyError, named.__getitem__, "a")
        self.assertRaises(tuff.InvalidArgument, named.__setitem__, "a.b", nn.ReLU())

    def test_repr(self):
        self.assertEqual(repr(nn.Sequential(nn.ReLU(), tuff.Tensor.exp)),
                         "Sequential(\n  (0): ReLU()\n  (1): Function(exp)\n)")

    def test_copies_and_pickles(self):
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.MultiHeadAttention(4, 2), nn.Dropout(0.25)).eval()
        x = tuff.randn([1, 5, 3])
        net[1].running_mean.assign(net[1].running_mean + 2).realize()

        def run(m):
            return m[2](m[1](m[0](x).transpose(1, 2)).transpose(1, 2)).tolist()
        wanted = run(net)
        drawn = tuff.get_rng_state().tolist()
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            self.assertEqual(run(other), wanted)
            self.assertEqual((other[3].p, other[3].training), (0.25, False))
            other[2].out_proj.bias = other[2].out_proj.bias + 1
            np.testing.assert_allclose(run(other), np.array(wanted) + 1, rtol=1e-5)
        self.assertEqual(run(net), wanted)
        self.assertEqual(tuff.get_rng_state().tolist(), drawn)

    def test_activations_and_pools(self):
        x = tuff.tensor([[[[-2.0, 0.0], [1.0, 8.0]]]])
        for layer, wanted in ((nn.ReLU(), x.relu()), (nn.ReLU6(), x.clamp(0, 6)), (nn.LeakyReLU(0.5), x.leaky_relu(0.5)),
                              (nn.GELU("tanh"), x.gelu("tanh")), (nn.SiLU(), x.silu()), (nn.Sigmoid(), x.sigmoid()),
                              (nn.Tanh(), x.tanh()), (nn.Softplus(2), x.softplus(2)), (nn.Softmax(-2), x.softmax(-2)),
                              (nn.LogSoftmax(), x.log_softmax()), (nn.SELU(), x.selu()), (nn.ELU(0.5), x.elu(0.5)),
                              (nn.CELU(2), x.celu(2)), (nn.Hardtanh(-1, 4), x.hardtanh(-1, 4)), (nn.Mish(), x.mish()),
                              (nn.LogSigmoid(), x.logsigmoid()), (nn.Hardsigmoid(), x.hardsigmoid()),
                              (nn.Hardswish(), x.hardswish()), (nn.Softsign(), x.softsign()), (nn.GLU(-2), x.glu(-2)),
                              (nn.Tanhshrink(), x.tanhshrink()), (nn.Softmin(-2), x.softmin(-2)),
                              (nn.PReLU(init=0.5), x.leaky_relu(0.5)), (nn.MaxPool2d(2), x.max_pool2d(2)),
                              (nn.AvgPool2d(2), x.avg_pool2d(2)), (nn.Identity(), x), (nn.Flatten(), x.flatten(1)),
                              (nn.AdaptiveAvgPool2d((1, 2)), x.mean([-2], keepdim=True))):
            self.assertEqual(layer(x).tolist(), wanted.tolist(), layer)
        self.assertRaises(tuff.InvalidArgument, nn.AdaptiveAvgPool2d(-3), x)


if __name__ == "__main__":
    unittest.main()
