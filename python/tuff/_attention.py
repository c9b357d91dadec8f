"""Attention as PyTorch's layer of that name has it."""
from . import nn
from ._tuff import InvalidArgument, ShapeError, bool_


class MultiheadAttention(nn.MultiHeadAttention):
    """nn.MultiHeadAttention with PyTorch's arguments: (time, batch, features) unless batch_first, in boolean masks true
    is left out, and the result is a pair of which the second is None without need_weights."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device="", dtype="float32"):
        if add_bias_kv or add_zero_attn:
            raise InvalidArgument("MultiheadAttention: add_bias_kv and add_zero_attn are not there")
        super().__init__(embed_dim, num_heads, dropout, bias, kdim, vdim, dtype=dtype, device=device)
        self.batch_first = batch_first
        self.num_heads = num_heads

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        """The result, and the weights (batch, queries, keys); by head (batch, heads, queries, keys) unless they are
        averaged. is_causal counts where there is no attn_mask."""
        if query.dim() not in (2, 3) or not query.dim() == key.dim() == value.dim():
            shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
            raise ShapeError(f"MultiheadAttention: {shapes} are not (time, features), or with batches, of all three")
        single = query.dim() == 2  # without a batch
        if single:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        swapped = not self.batch_first and not single
        if swapped:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if attn_mask is not None:
            is_causal = False
            if attn_mask.dtype == bool_:
                attn_mask = attn_mask.logical_not()
            if attn_mask.dim() == 3:  # of each head of each batch
                if attn_mask.shape[0] != query.shape[0] * self.num_heads:
                    raise ShapeError(f"MultiheadAttention: attn_mask {tuple(attn_mask.shape)} for {query.shape[0]} batches "
                                     f"of {self.num_heads} heads")
                attn_mask = attn_mask.unflatten(0, [query.shape[0], -1])
        got = super().forward(query, key, value, attn_mask, is_causal, key_padding_mask, need_weights,
                              average_attn_weights)
        out, weights = got if need_weights else (got, None)
        if swapped:
            out = out.transpose(0, 1)
        if single:
            out, weights = out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out, weights
