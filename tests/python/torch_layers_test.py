"""Layers beside PyTorch's, with its states under its names: values, gradients, both modes, masks."""
import sys
import unittest

import numpy as np

import tuff
from tuff import nn

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

torch.manual_seed(8)


def tensor(t):
    return tuff.tensor(t.detach().contiguous().numpy())


def pair(module, reference):
    """The module with the reference's state, under the reference's names."""
    report = module.load_state_dict({k: tensor(v) for k, v in reference.state_dict().items()})
    assert report == ([], []), report
    return module.eval(), reference.eval()


def leaves(result):
    return [t for r in result for t in leaves(r)] if isinstance(result, (tuple, list)) else [result]


class Layers(unittest.TestCase):
    def compare(self, module, reference, *args, atol=2e-5, **kwargs):
        """Results, and gradients of all parameters, of calls with the same arguments."""
        module, reference = pair(module, reference)

        def ours(a):
            return tensor(a) if isinstance(a, torch.Tensor) else tuple(map(ours, a)) if isinstance(a, tuple) else a
        got = leaves(module(*map(ours, args), **{k: ours(v) for k, v in kwargs.items()}))
        wanted = leaves(reference(*args, **kwargs))
        self.assertEqual(len(got), len(wanted))
        sum((w * torch.linspace(-1, 1, w.numel()).reshape(w.shape)).sum() for w in wanted).backward()
        total = None
        for g in got:
            part = (g * tensor(torch.linspace(-1, 1, g.numel()).reshape(g.shape))).sum()
            total = part if total is None else total + part
        total.backward()
        for g, w in zip(got, wanted):
            np.testing.assert_allclose(g.numpy(), w.detach().numpy(), rtol=1e-4, atol=atol)
        theirs = dict(reference.named_parameters())
        self.assertEqual({n for n, _ in module.named_parameters()}, set(theirs))
        for name, p in module.named_parameters():
            wanted = theirs[name].grad
            got = p.grad.numpy() if p.grad is not None else np.zeros(p.shape, np.float32)
            np.testing.assert_allclose(got, np.zeros(p.shape) if wanted is None else wanted.numpy(), rtol=2e-3, atol=10 * atol,
                                       err_msg=name)

    def test_conv1d(self):
        x = torch.randn(2, 4, 15)
        self.compare(nn.Conv1d(4, 6, 3), torch.nn.Conv1d(4, 6, 3), x)
        self.compare(nn.Conv1d(4, 6, 5, 2, 3, dilation=2, groups=2, bias=False),
                     torch.nn.Conv1d(4, 6, 5, 2, 3, dilation=2, groups=2, bias=False), x)
        self.assertRaises(tuff.ShapeError, nn.Conv1d(4, 6, 3), tuff.ones((4, 15)))
        self.assertRaises(tuff.InvalidArgument, nn.Conv1d, 4, 6, 3, groups=4)

    def test_norms(self):
        for shape in ((3, 6, 5), (2, 6, 4, 5)):
            x = torch.randn(shape) * 3 + 1
            self.compare(nn.GroupNorm(3, 6), torch.nn.GroupNorm(3, 6), x)
            lib = torch.nn.InstanceNorm1d if len(shape) == 3 else torch.nn.InstanceNorm2d
            self.compare(nn.InstanceNorm(6, affine=True), lib(6, affine=True), x)
            np.testing.assert_allclose(nn.InstanceNorm(6)(tensor(x)).numpy(), lib(6)(x).numpy(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(nn.GroupNorm(2, 6, affine=False)(tensor(x)).numpy(),
                                       torch.nn.GroupNorm(2, 6, affine=False)(x).numpy(), rtol=1e-4, atol=1e-5)
        norm, reference = pair(nn.LayerNorm2d(6), torch.nn.LayerNorm(6, 1e-6))
        x = torch.randn(2, 6, 4, 5)
        np.testing.assert_allclose(norm(tensor(x)).numpy(), reference(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).detach().numpy(),
                                   rtol=1e-4, atol=1e-5)
        self.assertRaises(tuff.InvalidArgument, nn.GroupNorm, 4, 6)
        self.assertRaises(tuff.ShapeError, nn.GroupNorm(2, 6), tuff.ones((2, 4, 3)))
        self.assertRaises(tuff.ShapeError, nn.InstanceNorm(6), tuff.ones((2, 6)))

    def test_embeddings(self):
        index = torch.tensor([[1, 0, 3], [4, 4, 0]])
        for row in (None, 0, -1):
            self.compare(nn.Embedding(5, 3, padding_idx=row), torch.nn.Embedding(5, 3, padding_idx=row), index)
            for mode in ("sum", "mean", "max"):
                self.compare(nn.EmbeddingBag(5, 3, mode, padding_idx=row), torch.nn.EmbeddingBag(5, 3, mode=mode, padding_idx=row),
                             index)
        self.assertEqual(nn.Embedding(5, 3, padding_idx=-2).weight.numpy()[3].tolist(), [0, 0, 0])
        alone = nn.EmbeddingBag(5, 3, "max", padding_idx=1)
        self.assertEqual(alone(tuff.tensor([[1, 1]])).tolist(), [[0, 0, 0]])
        self.assertRaises(tuff.InvalidArgument, nn.Embedding, 5, 3, padding_idx=5)
        self.assertRaises(tuff.InvalidArgument, nn.EmbeddingBag, 5, 3, "most")

    def test_cells(self):
        x, h, c = torch.randn(4, 3), torch.randn(4, 5), torch.randn(4, 5)
        for bias in (True, False):
            for how in ("tanh", "relu"):
                self.compare(nn.RNNCell(3, 5, bias, how), torch.nn.RNNCell(3, 5, bias, how), x, h)
            self.compare(nn.GRUCell(3, 5, bias), torch.nn.GRUCell(3, 5, bias), x, h)
            self.compare(nn.LSTMCell(3, 5, bias), torch.nn.LSTMCell(3, 5, bias), x, (h, c))
        self.compare(nn.RNNCell(3, 5), torch.nn.RNNCell(3, 5), x)
        self.compare(nn.GRUCell(3, 5), torch.nn.GRUCell(3, 5), x)
        self.compare(nn.LSTMCell(3, 5), torch.nn.LSTMCell(3, 5), x)
        self.assertRaises(tuff.ShapeError, nn.GRUCell(3, 5), tuff.ones((4, 4)))
        self.assertRaises(tuff.InvalidArgument, nn.RNNCell, 3, 5, nonlinearity="sine")

    def test_sequences(self):
        for kind in ("RNN", "LSTM", "GRU"):
            for options in ({}, {"num_layers": 2, "bidirectional": True}, {"num_layers": 2, "bias": False, "batch_first": True}):
                with self.subTest(kind=kind, options=options):
                    ours, theirs = getattr(nn, kind)(3, 5, **options), getattr(torch.nn, kind)(3, 5, **options)
                    self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                    x = torch.randn(4, 6, 3)
                    self.compare(ours, theirs, x)
                    states = torch.randn(options.get("num_layers", 1) * (2 if "bidirectional" in options else 1),
                                         4 if "batch_first" in options else 6, 5)
                    self.compare(getattr(nn, kind)(3, 5, **options), getattr(torch.nn, kind)(3, 5, **options), x,
                                 (states, states * 0.5) if kind == "LSTM" else states)
        self.compare(nn.RNN(3, 5, nonlinearity="relu"), torch.nn.RNN(3, 5, nonlinearity="relu"), torch.randn(4, 6, 3))
        self.assertRaises(tuff.ShapeError, nn.LSTM(3, 5), tuff.ones((4, 6, 4)))
        self.assertRaises(tuff.ShapeError, nn.GRU(3, 5), tuff.ones((4, 6, 3)), tuff.ones((2, 6, 5)))

    def test_lengths(self):
        lengths, rnn = [4, 1, 3], torch.nn.utils.rnn
        for kind in ("RNN", "LSTM", "GRU"):
            for batch_first in (False, True):
                options = {"num_layers": 2, "bidirectional": True, "batch_first": batch_first}
                ours, theirs = pair(getattr(nn, kind)(3, 5, **options), getattr(torch.nn, kind)(3, 5, **options))
                x = torch.randn(3, 4, 3) if batch_first else torch.randn(4, 3, 3)
                packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
                want, ends = theirs(packed)
                want = rnn.pad_packed_sequence(want, batch_first, total_length=4)[0]
                for given in (lengths, tuff.tensor(np.array(lengths, np.int32))):
                    y, h = ours(tuff.tensor(x.numpy()), lengths=given)
                    for got, wanted in zip([y, *(h if kind == "LSTM" else [h])], [want, *(ends if kind == "LSTM" else [ends])]):
                        np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
        layer, x = nn.GRU(3, 5), tuff.ones((4, 3, 3))
        with self.assertRaisesRegex(tuff.InvalidArgument, r"lengths\[1\] is 5, there are 4 steps"):
            layer(x, lengths=[1, 5, 2])
        self.assertRaises(tuff.ShapeError, layer, x, lengths=[1, 2])

    def test_weights_of_four_bits(self):
        linear = nn.Linear(64, 6)
        layer = nn.LinearInt4.from_float(linear, group_size=16)
        packed, scales, zeros = tuff.quantize_int4(linear.weight.detach(), 16)
        x = tuff.randn((3, 64))
        np.testing.assert_allclose(layer(x).numpy(), linear(x).numpy(), atol=0.2)
        weight = tuff.dequantize_int4(packed, scales, zeros, 16)
        np.testing.assert_allclose(tuff.linear_int4(x, packed, scales, zeros, 16, linear.bias).numpy(),
                                   x.linear(weight, linear.bias).numpy(), rtol=1e-4, atol=1e-5)
        q = np.arange(-8, 8, dtype=np.int32).reshape(2, 8)
        for signed in (True, False):
            got = tuff.unpack_int4(tuff.pack_int4(tuff.tensor(q)), signed)
            np.testing.assert_array_equal(got.numpy(), q if signed else q & 15)
        self.assertIsNone(tuff.quantize_int4(linear.weight, symmetric=True)[2])
        copied = nn.LinearInt4(64, 6, group_size=16)
        copied.load_state_dict(layer.state_dict())
        self.assertEqual(copied(x).tolist(), layer(x).tolist())

    def test_dropout_between_layers(self):
        layer = nn.GRU(3, 8, num_layers=2, dropout=0.5)
        x = tuff.randn([3, 4, 3]).realize()
        self.assertEqual(layer(x)[0].tolist(), layer(x)[0].tolist())
        layer.train()
        self.assertNotEqual(layer(x)[0].tolist(), layer(x)[0].tolist())

    def test_captured(self):
        layer = nn.LSTM(3, 4)
        x = [tuff.randn([5, 2, 3]).realize() for _ in range(4)]
        f = tuff.jit(lambda x: layer(x)[0])
        for each in x:
            np.testing.assert_allclose(f(each).numpy(), layer(each)[0].numpy(), rtol=1e-5, atol=1e-6)
        self.assertTrue(f.captured)


class Attention(unittest.TestCase):
    def attentions(self, **options):
        return pair(nn.MultiHeadAttention(8, 2, **options), torch.nn.MultiheadAttention(8, 2, batch_first=True, **options))

    def close(self, got, wanted):
        np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_weights(self):
        for bias in (True, False):
            ours, theirs = self.attentions(bias=bias)
            q, k = torch.randn(3, 4, 8), torch.randn(3, 6, 8)
            for average in (True, False):
                got = ours(tensor(q), tensor(k), tensor(k), need_weights=True, average_attn_weights=average)
                for g, w in zip(got, theirs(q, k, k, average_attn_weights=average)):
                    self.close(g, w)
            self.close(ours(tensor(q), tensor(k), tensor(k)), theirs(q, k, k)[0])

    def test_masks(self):
        ours, theirs = self.attentions()
        x = torch.randn(3, 5, 8)
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False, True, False, False, True]])
        hidden = torch.ones(5, 5).triu(1).bool()
        added = torch.randn(5, 5)
        for weights in (False, True):
            def call(*args, **kwargs):
                result = ours(*args, **kwargs, need_weights=weights)
                return result[0] if weights else result
            u = tensor(x)
            self.close(call(u, key_padding_mask=tensor(padding)), theirs(x, x, x, key_padding_mask=padding)[0])
            self.close(call(u, is_causal=True), theirs(x, x, x, attn_mask=hidden)[0])
            self.close(call(u, attn_mask=tensor(~hidden)), theirs(x, x, x, attn_mask=hidden)[0])
            both = theirs(x, x, x, attn_mask=hidden, key_padding_mask=padding)[0]
            self.close(call(u, is_causal=True, key_padding_mask=tensor(padding)), both)
            self.close(call(u, attn_mask=tensor(~hidden), key_padding_mask=tensor(padding)), both)
            self.close(call(u, attn_mask=tensor(added)), theirs(x, x, x, attn_mask=added)[0])
            self.close(call(u, attn_mask=tensor(added), key_padding_mask=tensor(padding)),
                       theirs(x, x, x, attn_mask=added, key_padding_mask=padding)[0])
        self.assertRaises(tuff.InvalidArgument, ours, u, attn_mask=tensor(added), is_causal=True)
        self.assertRaises(tuff.ShapeError, ours, u, key_padding_mask=tensor(padding[:2]))

    def test_keys_and_values_of_their_own_size(self):
        ours, theirs = self.attentions(kdim=5, vdim=7)
        self.assertEqual(list(ours.state_dict()), ["q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                                   "out_proj.weight", "out_proj.bias"])
        q, k, v = torch.randn(3, 4, 8), torch.randn(3, 6, 5), torch.randn(3, 6, 7)
        self.close(ours(tensor(q), tensor(k), tensor(v)), theirs(q, k, v)[0])
        self.assertRaises(tuff.ShapeError, ours, tensor(q), tensor(q), tensor(v))


class Losses(unittest.TestCase):
    """Modules of losses, and layers that are functions, beside PyTorch's."""

    def check(self, make, *given, **options):
        got = make(nn)(*(tensor(x) if isinstance(x, torch.Tensor) else x for x in given), **options)
        want = make(torch.nn)(*given, **options)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-6)

    def test_of_two(self):
        x, y = torch.rand(4, 5) * 0.8 + 0.1, torch.rand(4, 5)
        for name, options in (("L1Loss", {"reduction": "sum"}), ("MSELoss", {}), ("SmoothL1Loss", {"beta": 0.3}),
                              ("HuberLoss", {"delta": 0.2}), ("KLDivLoss", {"reduction": "batchmean"}),
                              ("BCELoss", {}), ("BCEWithLogitsLoss", {"reduction": "none"}), ("PoissonNLLLoss", {"full": True})):
            self.check(lambda lib: getattr(lib, name)(**options), x, y)
        signs = (x > 0.5).float() * 2 - 1
        self.check(lambda lib: lib.SoftMarginLoss(), x, signs)
        self.check(lambda lib: lib.HingeEmbeddingLoss(0.7), x, signs)

    def test_of_classes(self):
        x, y = torch.randn(4, 5), torch.tensor([0, 4, 2, 2])
        self.check(lambda lib: lib.CrossEntropyLoss(label_smoothing=0.1), x, y)
        self.check(lambda lib: lib.NLLLoss(ignore_index=2), x.log_softmax(1), y)
        weight = torch.rand(5)
        ours = nn.CrossEntropyLoss(tensor(weight))
        want = torch.nn.CrossEntropyLoss(weight)(x, y)
        np.testing.assert_allclose(ours(tensor(x), tensor(y)).numpy(), want.numpy(), rtol=2e-5)
        self.assertEqual(list(ours.state_dict()), ["weight"])

    def test_of_three(self):
        a, b, c = torch.randn(4, 5), torch.randn(4, 5), torch.randn(4, 5)
        self.check(lambda lib: lib.TripletMarginLoss(0.5, swap=True), a, b, c)
        self.check(lambda lib: lib.GaussianNLLLoss(full=True), a, b, c.abs())
        signs = torch.tensor([1.0, -1, 1, -1])
        self.check(lambda lib: lib.CosineEmbeddingLoss(0.1), a, b, signs)
        self.check(lambda lib: lib.MarginRankingLoss(0.1), a[:, 0], b[:, 0], signs)
        self.check(lambda lib: lib.CTCLoss(), torch.randn(6, 2, 5).log_softmax(2), torch.tensor([[1, 2], [3, 3]]),
                   torch.tensor([6, 6]), torch.tensor([2, 2]))

    def test_layers_that_are_functions(self):
        x, image = torch.randn(3, 8), torch.randn(2, 3, 4, 4)
        for make in (lambda lib: lib.Threshold(0.1, 2.0), lambda lib: lib.Softshrink(0.3), lambda lib: lib.Hardshrink(),
                     lambda lib: lib.RReLU().eval(), lambda lib: lib.Unflatten(1, (2, 4)), lambda lib: lib.ReLU(True),
                     lambda lib: lib.LeakyReLU(0.1, inplace=True), lambda lib: lib.Dropout(0.5, True).eval()):
            self.check(make, x.clone())
        self.check(lambda lib: lib.Softmax2d(), image)
        self.check(lambda lib: lib.UpsamplingNearest2d(scale_factor=2), image)
        self.check(lambda lib: lib.UpsamplingBilinear2d(size=(6, 7)), image)
        self.check(lambda lib: lib.CosineSimilarity(), x, x.flip(0))
        self.check(lambda lib: lib.PairwiseDistance(1.0), x, x.flip(0))

    def test_dropout_of_channels(self):
        layer = nn.Dropout2d(0.5).train()
        per_channel = layer(tuff.ones(4, 16, 3, 3)).reshape(64, 9)
        self.assertEqual(per_channel.amin(1).tolist(), per_channel.amax(1).tolist())
        self.assertEqual(set(per_channel[:, 0].tolist()), {0.0, 2.0})
        self.assertEqual(layer.eval()(tuff.ones(2, 2, 2, 2)).amin().item(), 1)
        self.assertRaises(tuff.ShapeError, layer, tuff.ones(2, 2))

    def test_containers_of_parameters(self):
        both = nn.ParameterList([tuff.ones(2), tuff.zeros(3)])
        self.assertEqual([k for k, _ in both.named_parameters()], ["0", "1"])
        self.assertEqual(len(both), 2)
        both[1] = tuff.ones(3)
        self.assertTrue(both[-1].requires_grad)
        named = nn.ParameterDict({"a": tuff.ones(2)})
        named["b"] = tuff.ones(1)
        self.assertEqual(list(named.keys()), ["a", "b"])
        for name in ("a.b", "", 1, "keys"):
            self.assertRaises(tuff.InvalidArgument, named.__setitem__, name, tuff.ones(1))
        self.assertRaisesRegex(TypeError, "not str", both.append, "x")
        del named["a"]
        self.assertEqual(list(named.state_dict()), ["b"])
        vector = nn.utils.parameters_to_vector(both.parameters())
        nn.utils.vector_to_parameters(vector * 2, both.parameters())
        self.assertEqual(both[0].tolist(), [2, 2])
        self.assertRaises(tuff.InvalidArgument, nn.utils.vector_to_parameters, vector[1:], both.parameters())


class MultiheadAttention(unittest.TestCase):
    def check(self, ours, theirs, *given, **options):
        got = ours(*map(tensor, given), **{k: tensor(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()})
        wanted = theirs(*given, **options)
        for g, w in zip(got, wanted):
            self.assertEqual(g is None, w is None)
            if w is not None:
                np.testing.assert_allclose(g.numpy(), w.detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_layouts(self):
        for batch_first in (False, True):
            ours, theirs = pair(nn.MultiheadAttention(8, 2, batch_first=batch_first),
                                torch.nn.MultiheadAttention(8, 2, batch_first=batch_first))
            q, k = torch.randn(4, 3, 8), torch.randn((4, 5, 8) if batch_first else (5, 3, 8))
            self.check(ours, theirs, q, k, k)
            self.check(ours, theirs, q, k, k, average_attn_weights=False)
            self.check(ours, theirs, q, k, k, need_weights=False)
            self.check(ours, theirs, q[0], k[0], k[0])

    def test_masks(self):
        ours, theirs = pair(nn.MultiheadAttention(8, 2), torch.nn.MultiheadAttention(8, 2))
        x = torch.randn(5, 3, 8)
        hidden = torch.ones(5, 5).triu(1).bool()
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False, True, False, False, True]])
        self.check(ours, theirs, x, x, x, attn_mask=hidden, key_padding_mask=padding)
        self.check(ours, theirs, x, x, x, attn_mask=torch.randn(5, 5))
        self.check(ours, theirs, x, x, x, attn_mask=torch.randn(6, 5, 5))
        got = ours(tensor(x), tensor(x), tensor(x), is_causal=True)[0]
        np.testing.assert_allclose(got.numpy(), theirs(x, x, x, attn_mask=hidden)[0].detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_what_is_not_there(self):
        self.assertRaisesRegex(tuff.InvalidArgument, "add_bias_kv", nn.MultiheadAttention, 8, 2, add_bias_kv=True)
        layer, x = nn.MultiheadAttention(8, 2), tuff.ones(5, 3, 8)
        self.assertRaisesRegex(tuff.ShapeError, "3 batches of 2 heads", layer, x, x, x, attn_mask=tuff.ones(5, 5, 5))
        self.assertRaisesRegex(tuff.ShapeError, "with batches", layer, x[0, 0], x[0, 0], x[0, 0])
        self.assertRaisesRegex(tuff.ShapeError, "with batches", layer, x, x[0], x[0])


class Transformers(unittest.TestCase):
    compare = Layers.compare
    CASES = ({}, {"activation": "gelu", "norm_first": True, "layer_norm_eps": 1e-3}, {"batch_first": True})

    def test_layers(self):
        src, memory = torch.randn(2, 5, 8), torch.randn(2, 5, 8)
        for options in self.CASES:
            for kind, given in (("TransformerEncoderLayer", [src]), ("TransformerDecoderLayer", [src, memory])):
                self.compare(getattr(nn, kind)(8, 2, 16, **options), getattr(torch.nn, kind)(8, 2, 16, **options), *given)
        self.assertRaises(tuff.InvalidArgument, nn.TransformerEncoderLayer, 8, 2, activation="tanh")
        self.compare(nn.TransformerEncoderLayer(8, 2, 16, activation=lambda x: x.silu()),
                     torch.nn.TransformerEncoderLayer(8, 2, 16, activation=torch.nn.functional.silu), src)

    def stacks(self, lib, kind, norm):
        layer = getattr(lib, f"Transformer{kind}Layer")(8, 2, 16, batch_first=True)
        return getattr(lib, f"Transformer{kind}")(layer, 2, lib.LayerNorm(8) if norm else None)

    def test_stacks(self):
        src, memory = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        self.compare(self.stacks(nn, "Encoder", True), self.stacks(torch.nn, "Encoder", True), src)
        decoder = self.stacks(torch.nn, "Decoder", False)
        self.compare(self.stacks(nn, "Decoder", False), decoder, src, memory)
        hidden = torch.ones(5, 5).triu(1).bool()
        ours, theirs = pair(self.stacks(nn, "Decoder", False), decoder)
        want = theirs(src, memory, tgt_mask=hidden).detach().numpy()
        for own in ({"tgt_mask": tensor(hidden)}, {"tgt_is_causal": True}):
            np.testing.assert_allclose(ours(tensor(src), tensor(memory), **own).numpy(), want, rtol=1e-4, atol=1e-5)

    def test_both(self):
        src, tgt = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        for options in self.CASES:
            options = {"batch_first": True, **options}
            reference = torch.nn.Transformer(8, 2, 2, 1, 16, **options)
            self.compare(nn.Transformer(8, 2, 2, 1, 16, **options), reference, src, tgt)
        ours, theirs = pair(nn.Transformer(8, 2, 2, 1, 16, **options), reference)
        self.assertEqual(set(ours.state_dict()), set(theirs.state_dict()))
        hidden = theirs.generate_square_subsequent_mask(4)
        np.testing.assert_array_equal(nn.Transformer.generate_square_subsequent_mask(4).numpy(), hidden.numpy())
        padding = torch.tensor([[False] * 5, [False, False, True, True, False]])
        want = theirs(src, tgt, tgt_mask=hidden, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        for own in ({"tgt_mask": tensor(hidden)}, {"tgt_is_causal": True}):
            got = ours(tensor(src), tensor(tgt), src_key_padding_mask=tensor(padding),
                       memory_key_padding_mask=tensor(padding), **own)
            np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_modes(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5)
        x = tuff.randn([1, 3, 8]).realize()
        self.assertEqual(layer(x).tolist(), layer(x).tolist())
        layer.train()
        self.assertNotEqual(layer(x).tolist(), layer(x).tolist())


if __name__ == "__main__":
    unittest.main()
