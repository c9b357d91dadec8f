"""tuff.nn.utils: what is done with all parameters together, under PyTorch's names."""
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff import Tensor as _Tensor
from ._grad import no_grad as _no_grad
from ._tuff.optim import clip_grad_norm_, clip_grad_value_  # noqa: F401


def parameters_to_vector(parameters):
    """All elements, one parameter behind the other."""
    return _Tensor.cat([p.reshape(-1) for p in parameters], 0)


def vector_to_parameters(vector, parameters):
    """Writes what parameters_to_vector() gave, or as many elements, into the parameters."""
    parameters = list(parameters)
    count = sum(int(p.numel()) for p in parameters)
    if vector.dim() != 1 or int(vector.numel()) != count:
        raise _InvalidArgument(f"vector_to_parameters: {tuple(vector.shape)} for parameters of {count} elements")
    first = 0
    with _no_grad():
        for p in parameters:
            p.assign(vector[first:first + int(p.numel())].reshape(p.shape))
            first += int(p.numel())
