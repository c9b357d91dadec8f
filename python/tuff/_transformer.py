"""Layers of the Transformer, with PyTorch's arguments: (time, batch, features) unless batch_first, and in boolean masks
true is left out. Of the modules of tuff.nn, so that each of these has its hooks and mode."""
import copy

from . import nn
from ._grad import no_grad
from ._module import Module, ModuleList
from ._tuff import InvalidArgument, Tensor, realize


class _Block(Module):
    """What encoder and decoder layers have: attentions and a feed-forward network around `norms` norms."""

    def __init__(self, d_model, norms, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, placed):
        if not callable(activation) and activation not in ("relu", "gelu"):
            raise InvalidArgument(f"Transformer: activation {activation!r} is neither relu nor gelu nor a function")
        self.linear1 = nn.Linear(d_model, dim_feedforward, bias, **placed)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(dim_feedforward, d_model, bias, **placed)
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", nn.LayerNorm(d_model, layer_norm_eps, **placed))
        for i in range(1, norms + 1):
            setattr(self, f"dropout{i}", nn.Dropout(dropout))
        self.activation = activation
        self.norm_first = norm_first

    def _around(self, i, x, f):
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))

    def _feed(self, x):
        y = self.linear1(x)
        y = self.activation(y) if callable(self.activation) else getattr(y, self.activation)()
        return self.linear2(self.dropout(y))


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward network."""
    self_attn: nn.MultiheadAttention
    linear1: nn.Linear
    linear2: nn.Linear
    norm1: nn.LayerNorm
    norm2: nn.LayerNorm
    dropout: nn.Dropout
    dropout1: nn.Dropout
    dropout2: nn.Dropout
    norm_first: bool

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, **placed):
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **placed)
        super().__init__(d_model, 2, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, placed)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = self._around(1, src, lambda y: self.self_attn(y, y, y, src_key_padding_mask, False, src_mask,
                                                          is_causal=is_causal)[0])
        return self._around(2, x, self._feed)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to a memory and a feed-forward network."""
    self_attn: nn.MultiheadAttention
    multihead_attn: nn.MultiheadAttention
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

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, **placed):
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **placed)
        self.multihead_attn = nn.MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **placed)
        super().__init__(d_model, 3, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, placed)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        x = self._around(1, tgt, lambda y: self.self_attn(y, y, y, tgt_key_padding_mask, False, tgt_mask,
                                                          is_causal=tgt_is_causal)[0])
        x = self._around(2, x, lambda y: self.multihead_attn(y, memory, memory, memory_key_padding_mask, False,
                                                             memory_mask, is_causal=memory_is_causal)[0])
        return self._around(3, x, self._feed)


class _Stack(Module):
    def __init__(self, layer, num_layers, norm):
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x, *rest):
        for layer in self.layers:
            x = layer(x, *rest)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """num_layers copies of an encoder layer, and what is behind them, as a LayerNorm."""
    layers: ModuleList
    num_layers: int
    norm: Module | None

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=False):
        return self._through(src, mask, src_key_padding_mask, is_causal)


class TransformerDecoder(_Stack):
    """num_layers copies of a decoder layer, and what is behind them, as a LayerNorm."""
    layers: ModuleList
    num_layers: int
    norm: Module | None

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        return self._through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                             tgt_is_causal, memory_is_causal)


class Transformer(Module):
    """An encoder of src and a decoder of tgt that attends to it, each with a LayerNorm behind its layers."""
    encoder: TransformerEncoder
    decoder: TransformerDecoder

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation="relu", custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, **placed):
        def stack(kind, layer, count):
            made = layer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, **placed)
            return kind(made, count, nn.LayerNorm(d_model, layer_norm_eps, **placed))

        self.encoder = custom_encoder or stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder or stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        matrices = [p for p in self.parameters() if p.ndim > 1]
        with no_grad():
            for p in matrices:
                p.assign(Tensor.glorot_uniform(p.shape, dtype=p.dtype, device=p.device))
        realize(matrices)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=False, tgt_is_causal=False,
                memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(size, **options):
        """(size, size), to be added: 0 on and below the diagonal, -infinity above it."""
        return Tensor.full((size, size), float("-inf"), **options).triu(1)
