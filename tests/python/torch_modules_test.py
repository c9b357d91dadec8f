"""Layers and models beside PyTorch's: states load under PyTorch's names, and give the same values."""
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

torch.manual_seed(3)


def loaded(module, reference):
    """The module with the reference's state, under the reference's names."""
    report = module.load_state_dict({k: tuff.tensor(v.numpy()) for k, v in reference.state_dict().items()})
    assert report == ([], []), report
    return module


def tensor(t):
    return tuff.tensor(t.detach().numpy())


def close(got, wanted, rtol=2e-5, atol=2e-5):
    np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=rtol, atol=atol)


def basic_block(lib, n_in, n_out, stride):
    """The block of a ResNet-18 under torchvision's names, of either library's modules."""
    def conv(a, b, k, s):
        return lib.Conv2d(a, b, k, stride=s, padding=k // 2, bias=False)

    class BasicBlock(lib.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = conv(n_in, n_out, 3, stride), lib.BatchNorm2d(n_out)
            self.relu = lib.ReLU()
            self.conv2, self.bn2 = conv(n_out, n_out, 3, 1), lib.BatchNorm2d(n_out)
            self.downsample = None
            if stride != 1 or n_in != n_out:
                self.downsample = lib.Sequential(conv(n_in, n_out, 1, stride), lib.BatchNorm2d(n_out))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + (x if self.downsample is None else self.downsample(x)))
    return BasicBlock()


def resnet(lib, width, classes):
    """A ResNet-18 of a chosen width, with torchvision's names."""
    class ResNet(lib.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = lib.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
            self.bn1, self.relu = lib.BatchNorm2d(width), lib.ReLU()
            self.maxpool = lib.MaxPool2d(3, 2, 1)
            for i in range(4):
                n_in, n_out = width << max(i - 1, 0), width << i
                setattr(self, f"layer{i + 1}", lib.Sequential(
                    basic_block(lib, n_in, n_out, 1 if i == 0 else 2), basic_block(lib, n_out, n_out, 1)))
            self.avgpool = lib.AdaptiveAvgPool2d((1, 1))
            self.fc = lib.Linear(width << 3, classes)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            for i in range(4):
                x = getattr(self, f"layer{i + 1}")(x)
            return self.fc(self.avgpool(x).flatten(1))
    return ResNet()


def bert(lib, width, heads, layers):
    """A BERT encoder with the names of transformers' BertModel, of either library's modules."""
    class Block(lib.Module):
        def __init__(self, /, **parts):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    def layer():
        return Block(
            attention=Block(
                self=Block(**{n: lib.Linear(width, width) for n in ("query", "key", "value")}),
                output=Block(dense=lib.Linear(width, width), LayerNorm=lib.LayerNorm(width, 1e-12))),
            intermediate=Block(dense=lib.Linear(width, 4 * width)),
            output=Block(dense=lib.Linear(4 * width, width), LayerNorm=lib.LayerNorm(width, 1e-12)))

    class Bert(lib.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = Block(
                word_embeddings=lib.Embedding(50, width), position_embeddings=lib.Embedding(16, width),
                token_type_embeddings=lib.Embedding(2, width), LayerNorm=lib.LayerNorm(width, 1e-12))
            self.encoder = Block(layer=lib.ModuleList([layer() for _ in range(layers)]))
            self.pooler = Block(dense=lib.Linear(width, width))

        def attended(self, x, a):
            batch, time = x.shape[:2]
            q, k, v = (getattr(a, n)(x).reshape((batch, time, heads, width // heads)).transpose(1, 2)
                       for n in ("query", "key", "value"))
            scores = (q @ k.transpose(-2, -1)) / (width // heads) ** 0.5
            return (scores.softmax(-1) @ v).transpose(1, 2).reshape((batch, time, width))

        def forward(self, words, positions, kinds, gelu):
            e = self.embeddings
            x = e.LayerNorm(e.word_embeddings(words) + e.position_embeddings(positions) + e.token_type_embeddings(kinds))
            for m in self.encoder.layer:
                a = m.attention
                x = a.output.LayerNorm(a.output.dense(self.attended(x, a.self)) + x)
                x = m.output.LayerNorm(m.output.dense(gelu(m.intermediate.dense(x))) + x)
            return self.pooler.dense(x[:, 0]).tanh()
    return Bert()


class Keywords(unittest.TestCase):
    """Layers are made by PyTorch's names of arguments."""

    def test_of_layers(self):
        for name, options in (
            ("Linear", dict(in_features=3, out_features=4, bias=True)),
            ("Conv2d", dict(in_channels=3, out_channels=4, kernel_size=3, stride=1, padding=1, dilation=1, groups=1, bias=False)),
            ("Conv1d", dict(in_channels=3, out_channels=4, kernel_size=3)),
            ("ConvTranspose2d", dict(in_channels=3, out_channels=4, kernel_size=2, stride=2, padding=0, output_padding=0, bias=False)),
            ("MaxPool2d", dict(kernel_size=2, stride=2, padding=0)),
            ("AvgPool2d", dict(kernel_size=2, stride=2)),
            ("AdaptiveAvgPool2d", dict(output_size=(1,1))),
            ("AdaptiveMaxPool2d", dict(output_size=1)),
            ("BatchNorm2d", dict(num_features=4, eps=1e-5, momentum=0.1)),
            ("BatchNorm1d", dict(num_features=4)),
            ("LayerNorm", dict(normalized_shape=8, eps=1e-6)),
            ("GroupNorm", dict(num_groups=2, num_channels=4)),
            ("InstanceNorm2d", dict(num_features=3, affine=True)),
            ("Embedding", dict(num_embeddings=5, embedding_dim=3, padding_idx=0)),
            ("Dropout", dict(p=0.1)),
            ("LSTM", dict(input_size=3, hidden_size=4, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)),
            ("GRU", dict(input_size=3, hidden_size=4)),
            ("RNN", dict(input_size=3, hidden_size=4, nonlinearity="relu")),
            ("LSTMCell", dict(input_size=3, hidden_size=4)),
            ("GRUCell", dict(input_size=3, hidden_size=4)),
            ("Softmax", dict(dim=1)),
            ("LogSoftmax", dict(dim=1)),
            ("GELU", dict(approximate="tanh")),
            ("LeakyReLU", dict(negative_slope=0.2)),
            ("ELU", dict(alpha=1.0)),
            ("PReLU", dict(num_parameters=1, init=0.25)),
            ("Flatten", dict(start_dim=1, end_dim=-1)),
            ("Upsample", dict(scale_factor=2, mode="nearest")),
            ("PixelShuffle", dict(upscale_factor=2)),
            ("ReflectionPad2d", dict(padding=1)),
            ("ZeroPad2d", dict(padding=1)),
            ("ConstantPad1d", dict(padding=1, value=0.5)),
            ("Hardtanh", dict(min_val=0, max_val=1)),
            ("Softplus", dict(beta=1, threshold=20)),
            ("Unfold", dict(kernel_size=3, dilation=1, padding=1, stride=1)),
            ("Fold", dict(output_size=4, kernel_size=2, stride=2)),
            ("RMSNorm", dict(normalized_shape=8, eps=1e-6)),
            ("GLU", dict(dim=-1)),
            ("EmbeddingBag", dict(num_embeddings=5, embedding_dim=3, mode="sum")),
            ("LocalResponseNorm", dict(size=5)),
            ("ChannelShuffle", dict(groups=2)),
            ("MaxUnpool2d", dict(kernel_size=2)),
            ("LPPool2d", dict(norm_type=2, kernel_size=2)),
        ):
            with self.subTest(name):
                getattr(nn, name)(**options)
                if hasattr(torch.nn, name):
                    getattr(torch.nn, name)(**options)

    def test_one_axis_is_normalized(self):
        for layer in (nn.LayerNorm((4,)), nn.LayerNorm(4), nn.RMSNorm([4])):
            self.assertEqual(layer(tuff.ones(2, 4)).shape, (2, 4))
        self.assertRaisesRegex(tuff.InvalidArgument, "one axis is normalized", nn.LayerNorm, (3, 4))


class Models(unittest.TestCase):
    def test_resnet(self):
        reference = resnet(torch.nn, 8, 10)
        self.assertIn("layer2.0.downsample.1.num_batches_tracked", reference.state_dict())
        x = torch.randn(4, 3, 64, 64)
        for _ in range(2):
            reference(x)  # moves the running statistics
        model = loaded(resnet(nn, 8, 10), reference)
        close(model.eval()(tensor(x)), reference.eval()(x))
        model.train(), reference.train()
        close(model(tensor(x)), reference(x), rtol=1e-3, atol=1e-3)
        close(model.layer4[1].bn2.running_var, reference.layer4[1].bn2.running_var, rtol=1e-3)

    def test_gradients_of_a_resnet(self):
        reference = resnet(torch.nn, 4, 5)
        model = loaded(resnet(nn, 4, 5), reference)
        model.eval(), reference.eval()
        x = torch.randn(2, 3, 32, 32)
        reference(x).square().sum().backward()
        model(tensor(x)).square().sum().backward()
        theirs = dict(reference.named_parameters())
        self.assertEqual([n for n, _ in model.named_parameters()], list(theirs))
        for name, p in model.named_parameters():
            close(p.grad, theirs[name].grad, rtol=1e-3, atol=1e-4)

    def test_bert(self):
        reference = bert(torch.nn, 32, 4, 2)
        self.assertIn("encoder.layer.1.attention.output.LayerNorm.bias", reference.state_dict())
        model = loaded(bert(nn, 32, 4, 2), reference)
        words, kinds = torch.randint(0, 50, (3, 12)), torch.randint(0, 2, (3, 12))
        positions = torch.arange(12)[None].expand(3, 12)
        wanted = reference(words, positions, kinds, torch.nn.functional.gelu)
        close(model(*(tuff.tensor(t.contiguous().numpy()) for t in (words, positions, kinds)), tuff.Tensor.gelu), wanted)


if __name__ == "__main__":
    unittest.main()
