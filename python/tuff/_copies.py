"""What pickle calls to make a tensor again of what Tensor.__reduce__() gave it."""
from ._tuff import Tensor


def tensor_of(data, sizes, dtype, device, requires_grad):
    return Tensor.from_bytes(data, sizes, dtype=dtype, device=device, requires_grad=requires_grad)
