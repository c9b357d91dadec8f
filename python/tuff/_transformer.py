"""Layers of the Transformer, of the modules of tuff.nn, so that each of these has its hooks and mode."""
from . import nn
from ._grad import no_grad
from ._module import Module, ModuleList
from ._tuff import InvalidArgument, Tensor, realize


class _Block(Module):
    """What encoder and decoder layers have: attentions and a feed-forward network around `norms` norms."""

    def __init__(self, features, norms, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, options):
        if activation not in ("relu", "gelu"):
            raise InvalidArgument(f"Transformer: activation {activation!r} is neither relu nor gelu")
        self.linear1 = nn.Linear(features, dim_feedforward, **options)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(dim_feedforward, features, **options)
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", nn.LayerNorm(features, layer_norm_eps, **options))
        for i in range(1, norms + 1):
            setattr(self, f"dropout{i}", nn.Dropout(dropout))
        self.activation = activation
        self.norm_first = norm_first

    def _around(self, i, x, f):
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))

    def _feed(self, x):
        y = self.linear1(x)
        return self.linear2(self.dropout(y.relu() if self.activation == "relu" else y.gelu()))


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward network, of (batch, time, features)."""
    self_attn: nn.MultiHeadAttention
    linear1: nn.Linear
    linear2: nn.Linear
    norm1: nn.LayerNorm
    norm2: nn.LayerNorm
    dropout: nn.Dropout
    dropout1: nn.Dropout
    dropout2: nn.Dropout
    norm_first: bool
    activation: str

    def __init__(self, features, heads, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 norm_first=False, **options):
        self.self_attn = nn.MultiHeadAttention(features, heads, dropout, **options)
        super().__init__(features, 2, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, options)

    def forward(self, src, src_mask=None, is_causal=False, src_key_padding_mask=None):
        x = self._around(1, src, lambda y: self.self_attn(y, y, y, src_mask, is_causal, src_key_padding_mask))
        return self._around(2, x, self._feed)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to a memory and a feed-forward network."""
    self_attn: nn.MultiHeadAttention
    multihead_attn: nn.MultiHeadAttention
    linear1: nn.Linear
    linear2: nn.Linear
    norm1: nn.LayerNorm
    norm2: nn.LayerNorm
    norm3: nn.LayerNorm
    dropout: nn.Dropout
    dropout1: nn.Dropout
    dropout2: nn.Dropout
    dropout3: nn.Dropout
    norm_first: bool
    activation: str

    def __init__(self, features, heads, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 norm_first=False, **options):
        self.self_attn = nn.MultiHeadAttention(features, heads, dropout, **options)
        self.multihead_attn = nn.MultiHeadAttention(features, heads, dropout, **options)
        super().__init__(features, 3, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, options)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_is_causal=False, tgt_key_padding_mask=None,
                memory_key_padding_mask=None):
        x = self._around(1, tgt, lambda y: self.self_attn(y, y, y, tgt_mask, tgt_is_causal, tgt_key_padding_mask))
        x = self._around(2, x, lambda y: self.multihead_attn(y, memory, memory, memory_mask, False,
                                                             memory_key_padding_mask))
        return self._around(3, x, self._feed)


class _Stack(Module):
    _layer_class = None

    def __init__(self, features, heads, num_layers, norm=False, **options):
        self.layers = ModuleList([self._layer_class(features, heads, **options) for _ in range(num_layers)])
        placed = {k: v for k, v in options.items() if k in ("dtype", "device")}
        self.norm = nn.LayerNorm(features, options.get("layer_norm_eps", 1e-5), **placed) if norm else None

    def _through(self, x, *rest):
        for layer in self.layers:
            x = layer(x, *rest)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers encoder layers, which take `options`, and with `norm` a LayerNorm behind them."""
    _layer_class = TransformerEncoderLayer
    layers: ModuleList
    norm: nn.LayerNorm | None

    def forward(self, src, src_mask=None, is_causal=False, src_key_padding_mask=None):
        return self._through(src, src_mask, is_causal, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """num_layers decoder layers, which take `options`, and with `norm` a LayerNorm behind them."""
    _layer_class = TransformerDecoderLayer
    layers: ModuleList
    norm: nn.LayerNorm | None

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_is_causal=False, tgt_key_padding_mask=None,
                memory_key_padding_mask=None):
        return self._through(tgt, memory, tgt_mask, memory_mask, tgt_is_causal, tgt_key_padding_mask,
                             memory_key_padding_mask)


class Transformer(Module):
    """An encoder of src and a decoder of tgt that attends to it, each with a LayerNorm behind its layers, which
    take `options`; of (batch, time, features)."""
    encoder: TransformerEncoder
    decoder: TransformerDecoder

    def __init__(self, features=512, heads=8, num_encoder_layers=6, num_decoder_layers=6, **options):
        self.encoder = TransformerEncoder(features, heads, num_encoder_layers, True, **options)
        self.decoder = TransformerDecoder(features, heads, num_decoder_layers, True, **options)
        matrices = [p for p in self.parameters() if p.ndim > 1]
        with no_grad():
            for p in matrices:
                p.assign(Tensor.glorot_uniform(p.shape, dtype=p.dtype, device=p.device))
        realize(matrices)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=False, tgt_is_causal=False):
        memory = self.encoder(src, src_mask, src_is_causal, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_is_causal, tgt_key_padding_mask,
                            memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(size, **options):
        """(size, size), to be added: 0 on and below the diagonal, -infinity above it."""
        return Tensor.full((size, size), float("-inf"), **options).triu(1)
