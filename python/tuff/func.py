"""Functions of functions under torch.func's names: derivatives of functions of tensors. Arguments are those of torch.func,
without has_aux and randomness; tuff.autograd has the same of one list of inputs at a time."""
import functools as _functools

from . import autograd as _autograd
from ._tuff import InvalidArgument as _InvalidArgument
from .autograd import vmap  # noqa: F401


def _chosen(what, function, argnums, args, kwargs):
    """The arguments that argnums names, as a tuple, and the function of these alone."""
    single = isinstance(argnums, int)
    places = [n + len(args) if n < 0 else n for n in ((argnums,) if single else argnums)]
    if not all(0 <= n < len(args) for n in places):
        raise _InvalidArgument(f"{what}: argnums is {argnums}, there are {len(args)} arguments")

    def of_chosen(*values):
        all_of_them = list(args)
        for n, value in zip(places, values, strict=True):
            all_of_them[n] = value
        return function(*all_of_them, **kwargs)
    return tuple(args[n] for n in places), of_chosen, single


def vjp(func, *primals):
    """(func(*primals), a function that gives, of v like the outputs, the gradients of sum(outputs * v))."""
    outputs = func(*primals)

    def product(*v):
        gradients = _autograd.vjp(func, primals, v)[1]
        return tuple(gradients)
    return outputs, product


def jvp(func, primals, tangents):
    """(func(*primals), how it changes with primals that move along tangents)."""
    return _autograd.jvp(func, tuple(primals), tuple(tangents))


def _jacobian(what, by, func, argnums):
    @_functools.wraps(func)
    def of(*args, **kwargs):
        given, of_chosen, single = _chosen(what, func, argnums, args, kwargs)
        matrices = by(of_chosen, given)
        return matrices[0] if single else tuple(matrices)
    return of


def jacrev(func, argnums=0):
    """The function that gives the derivatives of func by the arguments that argnums names, row by row."""
    return _jacobian("jacrev", _autograd.jacrev, func, argnums)


def jacfwd(func, argnums=0):
    """The same, column by column: for few elements of the arguments."""
    return _jacobian("jacfwd", _autograd.jacfwd, func, argnums)


def hessian(func, argnums=0):
    """The function that gives the second derivatives of func by one argument."""
    return jacfwd(jacrev(func, argnums), argnums)


def grad_and_value(func, argnums=0):
    """The function that gives (gradients, value) of func, which gives one element."""
    @_functools.wraps(func)
    def of(*args, **kwargs):
        given, of_chosen, single = _chosen("grad", func, argnums, args, kwargs)
        value, gradients = _autograd.vjp(of_chosen, given)
        return gradients[0] if single else tuple(gradients), value
    return of


def grad(func, argnums=0):
    """The function that gives the gradients of func, which gives one element."""
    both = grad_and_value(func, argnums)

    @_functools.wraps(func)
    def of(*args, **kwargs):
        return both(*args, **kwargs)[0]
    return of
