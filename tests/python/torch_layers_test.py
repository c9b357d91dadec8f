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


class Transformers(unittest.TestCase):
    compare = Layers.compare
    CASES = ({}, {"activation": "gelu", "norm_first": True, "layer_norm_eps": 1e-3})

    def test_layers(self):
        src, memory = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        for options in self.CASES:
            self.compare(nn.TransformerEncoderLayer(8, 2, 16, **options),
                         torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options), src)
            self.compare(nn.TransformerDecoderLayer(8, 2, 16, **options),
                         torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, **options), src, memory)
        self.assertRaises(tuff.InvalidArgument, nn.TransformerEncoderLayer, 8, 2, activation="tanh")

    def test_stacks(self):
        src, memory = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, torch.nn.LayerNorm(8))
        self.compare(nn.TransformerEncoder(8, 2, 2, norm=True, dim_feedforward=16), encoder, src)
        decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)
        self.compare(nn.TransformerDecoder(8, 2, 2, dim_feedforward=16), decoder, src, memory)
        hidden = torch.ones(5, 5).triu(1).bool()
        ours, theirs = pair(nn.TransformerDecoder(8, 2, 2, dim_feedforward=16), decoder)
        got = ours(tensor(src), tensor(memory), tgt_is_causal=True)
        np.testing.assert_allclose(got.numpy(), theirs(src, memory, tgt_mask=hidden).detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_both(self):
        src, tgt = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        for options in self.CASES:
            reference = torch.nn.Transformer(8, 2, 2, 1, 16, batch_first=True, **options)
            self.compare(nn.Transformer(8, 2, 2, 1, dim_feedforward=16, **options), reference, src, tgt)
        ours, theirs = pair(nn.Transformer(8, 2, 2, 1, dim_feedforward=16, **options), reference)
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
