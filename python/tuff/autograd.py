"""Functions with gradients of their own, activations that are computed again, and gradients of functions."""
import functools as _functools

from . import _tuff


class FunctionContext:
    """What forward() leaves for backward(): saved tensors, and any attribute that it sets. needs_input_grad says of
    each argument whether it is a tensor of floats."""
    needs_input_grad: tuple[bool, ...]

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._saved = ()

    def save_for_backward(self, *tensors):
        """Arguments, results and what was computed in between. A result that backward() uses has the function's
        own gradient when gradients of gradients are taken."""
        self._saved = tensors

    @property
    def saved_tensors(self):
        return self._saved


class Function:
    """A function whose gradient is given, as in PyTorch:

        class Exp(tuff.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad):
                y, = ctx.saved_tensors
                return grad * y

        y = Exp.apply(x)

    apply() calls both, one after the other: backward() gets tensors that stand for the gradients of the results
    (None for those that are no floats) and returns a gradient for each argument of forward(), None where there is
    none. What it computes is a graph that the gradients are put into later, so it must not read values that
    depend on them, and it runs once however often gradients are taken. Without gradients (no_grad) it is not
    called."""

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("Function: forward(ctx, *args) is to be given")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("Function: backward(ctx, *grads) is to be given")

    @classmethod
    def apply(cls, *args, **kwargs):
        """forward() of tensors and other arguments: a tensor, or a tuple of them."""
        tensors, call = _with_places(args)
        ctx = FunctionContext(tuple(isinstance(a, _tuff.Tensor) and a.dtype.is_float for a in args))
        single = []

        def forward(given):
            results = cls.forward(ctx, *call(given), **kwargs)
            single.append(isinstance(results, _tuff.Tensor))
            return _tensors_of("Function", "forward()", results)

        def backward(grads):
            given = cls.backward(ctx, *grads)
            given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
            if len(given) != len(args):
                raise _tuff.InvalidArgument(f"Function: backward() gave {len(given)} gradients for {len(args)} arguments: "
                                      "give None where there is none")
            return [g for g, a in zip(given, args) if isinstance(a, _tuff.Tensor)]

        results = _tuff.function_of(forward, backward, tensors)
        return results[0] if single[0] else tuple(results)


def _with_places(args):
    """The tensors among arguments, and a function that puts others in their places."""
    tensors = [a for a in args if isinstance(a, _tuff.Tensor)]

    def call(given):
        left = iter(given)
        return [next(left) if isinstance(a, _tuff.Tensor) else a for a in args]
    return tensors, call


def _tensors_of(what, whose, results):
    listed = [results] if isinstance(results, _tuff.Tensor) else results
    if not isinstance(listed, (tuple, list)) or not all(isinstance(t, _tuff.Tensor) for t in listed):
        raise _tuff.InvalidArgument(f"{what}: {whose} gives {type(results).__name__}, not a tensor or a tuple of tensors")
    return list(listed)


def _listed(what, tensors):
    return _tensors_of(what, "an argument", tensors), isinstance(tensors, _tuff.Tensor)


def _unlisted(tensors, single):
    return tensors[0] if single else tuple(tensors)


def _traced(what, function, spread):
    """A function of one list that gives a list, and whether the last call gave a single tensor."""
    single = []

    def of_list(given):
        results = function(*spread(given))
        single[:] = [isinstance(results, _tuff.Tensor)]
        return _tensors_of(what, "the function", results)
    return of_list, lambda: single[0]


def checkpoint(function, *args, **kwargs):
    """function(*args, **kwargs). For gradients, what it computes between its arguments and its results is not kept
    but computed again, once the gradients of its results are there: of a chain of such functions memory holds the
    tensors among the arguments of each, and what is inside of one at a time (Chen et al., 2016). What is computed
    again has the same bits, random numbers included. Parameters that it uses have gradients as always; other
    tensors that are no memory yet belong to the arguments, or they are computed again too."""
    tensors, call = _with_places(args)
    traced, single = _traced("checkpoint", lambda *a: function(*a, **kwargs), call)
    results = _tuff.checkpoint_of(traced, tensors)
    return _unlisted(results, single())


def vjp(function, inputs, v=None):
    """(outputs, gradients of sum(outputs * v) by the inputs): v times the Jacobian matrix. Inputs are a tensor or a
    tuple of them, and so are the gradients; v is like the outputs, and may be left out for a single element. Other
    tensors that the function uses are constants."""
    given, one = _listed("vjp", inputs)
    traced, single = _traced("vjp", function, lambda x: x)
    outputs, gradients = _tuff.vjp_of(traced, given, [] if v is None else _listed("vjp", v)[0])
    return _unlisted(outputs, single()), _unlisted(gradients, one)


def jvp(function, inputs, v):
    """(outputs, the Jacobian matrix times v): how the outputs change with inputs that move along v, which is like
    the inputs. By the gradient of vjp() in its v, which is linear in it."""
    given, _ = _listed("jvp", inputs)
    traced, single = _traced("jvp", function, lambda x: x)
    outputs, tangents = _tuff.jvp_of(traced, given, _listed("jvp", v)[0])
    return _unlisted(outputs, single()), _unlisted(tangents, single())


def jacrev(function, inputs):
    """The derivatives of every element of function(inputs), one tensor, by every element of the inputs: the
    output's extents, then the input's; a tuple for a tuple of inputs. One vjp() of as many v as the output has
    elements, by vmap(): what it computes on the way has that many times the room."""
    given, one = _listed("jacrev", inputs)
    return _unlisted(_tuff.jacrev_of(lambda x: function(*x), given), one)


def jacfwd(function, inputs):
    """jacrev()'s derivatives by one jvp() of as many v as an input has elements: for functions of few elements that
    give many."""
    given, one = _listed("jacfwd", inputs)
    return _unlisted(_tuff.jacfwd_of(lambda x: function(*x), given), one)


def hessian(function, x):
    """The second derivatives of a function of one element: x's extents twice."""
    return _tuff.hessian_of(function, x)


def vmap(function, in_dims=0, out_dims=0):
    """The function that computes `function` for every slice of its tensors along an axis, side by side: function is
    called once, with tensors that stand for a slice each, and the graph that it builds gets another axis (no loop).
    in_dims: the axis, or one per argument, None for those that are the same for all slices; results have the slices
    along out_dims. Random numbers are the same for all slices. The function must not read values or write memory
    that depends on its arguments."""
    @_functools.wraps(function)
    def mapped(*args, **kwargs):
        dims = tuple(in_dims) if isinstance(in_dims, (tuple, list)) else tuple(
            in_dims if isinstance(a, _tuff.Tensor) else None for a in args)
        if len(dims) != len(args):
            raise _tuff.InvalidArgument(f"vmap: {len(dims)} in_dims for {len(args)} arguments")
        tensors, call = _with_places(args)
        traced, single = _traced("vmap", lambda *a: function(*a, **kwargs), call)
        results = _tuff.vmap_of(traced, tensors, [d for d, a in zip(dims, args) if isinstance(a, _tuff.Tensor)], out_dims)
        return _unlisted(results, single())
    return mapped


def _leaves(tree):
    """The tensors of tuples, lists and dicts within each other, in order; None has none."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [x for key in tree for x in _leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in _leaves(part)]
    return [tree]


def _shaped(tree, leaves):
    """A tree like `tree` of the next tensors of an iterator."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: _shaped(tree[key], leaves) for key in tree}
    if isinstance(tree, (tuple, list)):
        parts = [_shaped(part, leaves) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(leaves)


def scan(f, init, xs=None, length=None, reverse=False, ahead=True):
    """A loop, as jax.lax.scan: f(carry, x) gives (carry, y) for each x of xs along axis 0, from the last to the first
    if reverse; returns the last carry and all y along a new first axis. carry, x and y are tensors, or tuples, lists
    and dicts of them, or None; length says how many steps there are where xs is None.

        def step(h, x):
            h = (x + h @ w).tanh()
            return h, h
        last, outputs = tuff.scan(step, h0, xs)

    f is called once, with tensors that stand for those of all steps, and must not read their values or write memory
    that depends on them; random numbers are the same in every step. Compiling takes as long as one step does. What a
    step computes of x alone is computed for all of them before; ahead=False: by each step, in the memory of one. The
    carry keeps its shapes and has one dtype. Inside a Jit the number of steps may vary, and of the carry and
    the xs' rows the first extent."""
    result = []

    def step(states, rows):
        carry, y = f(_shaped(init, iter(states)), _shaped(xs, iter(rows)))
        result.append(y)
        for what, tree in (("carry", carry), ("y", y)):
            for leaf in _leaves(tree):
                if not isinstance(leaf, _tuff.Tensor):
                    raise _tuff.InvalidArgument(f"scan: {what} has a {type(leaf).__name__}: give a tensor or None")
        return _leaves(carry), _leaves(y)
    states, outputs = _tuff.scan_of(step, _leaves(init), _leaves(xs), -1 if length is None else length, reverse,
                                    ahead)
    return _shaped(init, iter(states)), _shaped(result[0], iter(outputs))
