"""Module: what has parameters, buffers and other modules inside, each under a name; and containers."""
import collections
from typing import Any, Callable

from . import _tuff
from ._tuff import InvalidArgument, Tensor, TrainingMode, nn as _nn, training

_DTYPES = [d for d in vars(_tuff).values() if isinstance(d, _tuff.DType)]

LoadReport = collections.namedtuple("LoadReport", ["missing_keys", "unexpected_keys"])
LoadReport.__doc__ = "What load_state_dict() found no value, and no place, for."


def load_state_dict(into, values, strict=True):
    """Assigns values by name, cast and moved to where they go, and realizes them. With strict what is
    missing or too much is an error that names it; without, what both have is assigned and the result
    names the rest."""
    return LoadReport(*_nn.load_state_dict(into, values, strict))


def Parameter(data):
    """A tensor that an optimizer trains: the same, with requires_grad."""
    if not isinstance(data, Tensor):
        raise TypeError(f"a parameter has to be a Tensor, not {type(data).__name__}")
    data.requires_grad = True
    return data


class HookHandle:
    """What registering a hook returns."""

    def __init__(self, hooks):
        self._hooks = hooks
        self._key = object()

    def remove(self):
        """The hook is called no longer."""
        self._hooks.pop(self._key, None)


class Module:
    """A base for models: forward() computes, and what is assigned to attributes is found by name.

        class Net(nn.Module):
            def __init__(self):
                self.inner, self.out = nn.Linear(2, 64), nn.Linear(64, 2)

            def forward(self, x):
                return self.out(self.inner(x).relu())

    Modules are parts, tensors with requires_grad parameters; other tensors are not kept unless they are
    registered as buffers.

    A module computes in the thread's mode, tuff.training(), until train() or eval() has been called for
    it or for a module that it is part of; from then on it computes as the last of these calls said, also
    inside of a TrainingMode that says otherwise.
    """

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _transient=set(), _mode=None,
                             _hooks={}, _pre_hooks={})
        return self

    def forward(self, *args, **kwargs):
        """What a call computes; for those who derive."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args, **kwargs):
        if self._mode is None:
            return self._run(args, kwargs)
        with TrainingMode(self._mode):
            return self._run(args, kwargs)

    def _run(self, args, kwargs):
        for hook in list(self._pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._hooks.values()):
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    # ---- attributes

    def __getattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            kept = self.__dict__.get(kind, {})
            if name in kept:
                return kept[name]
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        kind = self._kind_of(name, value)
        if kind is None:
            self._forget(name)
            object.__setattr__(self, name, value)
        else:
            if name not in kind:
                self._forget(name)
                self.__dict__.pop(name, None)
            kind[name] = value

    def _kind_of(self, name, value):
        """Where an attribute of this value is kept; None: with the others."""
        if isinstance(value, Module):
            return self._modules
        if isinstance(value, Tensor):
            if name in self._buffers:
                return self._buffers
            return self._parameters if value.requires_grad or name in self._parameters else None
        if value is None:
            return next((k for k in (self._parameters, self._buffers, self._modules) if name in k), None)
        return None

    def _forget(self, name):
        for kept in (self._parameters, self._buffers, self._modules):
            kept.pop(name, None)
        self._transient.discard(name)

    def __delattr__(self, name):
        if any(name in kept for kept in (self._parameters, self._buffers, self._modules)):
            self._forget(name)
        else:
            object.__delattr__(self, name)

    def __dir__(self):
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def _register(self, kept, name, value, kind):
        if not isinstance(name, str) or not name or "." in name:
            raise InvalidArgument(f"{name!r} is no name: a text without dots is one")
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name!r} has to be a {kind.__name__}, not {type(value).__name__}")
        if name not in kept and hasattr(self, name):
            raise InvalidArgument(f"{type(self).__name__} has an attribute {name!r}")
        kept[name] = value

    def register_parameter(self, name, parameter):
        """What an optimizer trains; None keeps the name for one."""
        self._register(self._parameters, name, parameter, Tensor)

    def register_buffer(self, name, tensor, persistent=True):
        """Kept and moved along, not trained; state_dict() leaves it out unless it is persistent."""
        self._register(self._buffers, name, tensor, Tensor)
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name, module):
        """A part under a name that is no attribute's: a number, say."""
        self._register(self._modules, name, module, Module)

    add_module = register_module

    # ---- what there is, by name

    def named_children(self):
        """(name, module) of its parts."""
        return [(name, m) for name, m in self._modules.items() if m is not None]

    def children(self):
        """Its parts."""
        return [m for _, m in self.named_children()]

    def named_modules(self, prefix=""):
        """(name, module): itself under the prefix, then its parts and theirs, each once."""
        return list(self._walk(prefix, set()))

    def _walk(self, prefix, seen):
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, m in self.named_children():
            yield from m._walk(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self):
        """Itself, its parts and theirs, each once."""
        return [m for _, m in self.named_modules()]

    def _named(self, kind, prefix, recurse):
        seen = set()
        for path, m in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, t in getattr(m, kind).items():
                if t is not None and id(t) not in seen:
                    seen.add(id(t))
                    yield f"{path}.{name}" if path else name, t

    def named_parameters(self, prefix="", recurse=True):
        """(name, tensor); one that several names share once, under the first."""
        return list(self._named("_parameters", prefix, recurse))

    def named_buffers(self, prefix="", recurse=True):
        """(name, tensor), those too that state_dict() leaves out."""
        return list(self._named("_buffers", prefix, recurse))

    def parameters(self, recurse=True):
        """What an optimizer trains, in order of declaration."""
        return [t for _, t in self.named_parameters(recurse=recurse)]

    def buffers(self, recurse=True):
        """Tensors that are kept and not trained."""
        return [t for _, t in self.named_buffers(recurse=recurse)]

    def get_submodule(self, target):
        """The part of that name, with dots; InvalidArgument where there is none."""
        m = self
        for name in target.split(".") if target else []:
            m = m._modules.get(name)
            if m is None:
                raise InvalidArgument(f"{type(self).__name__} has no module {target!r}")
        return m

    def get_parameter(self, target):
        """The parameter of that name, with dots; InvalidArgument where there is none."""
        path, _, name = target.rpartition(".")
        t = self.get_submodule(path)._parameters.get(name)
        if t is None:
            raise InvalidArgument(f"{type(self).__name__} has no parameter {target!r}")
        return t

    # ---- states

    def state_dict(self, prefix=""):
        """All that a checkpoint holds: tensors by name, of parts with theirs and a dot before."""
        own = {**self._parameters, **{n: t for n, t in self._buffers.items() if n not in self._transient}}
        state = {prefix + name: t for name, t in own.items() if t is not None}
        for name, m in self.named_children():
            state.update(m.state_dict(f"{prefix}{name}."))
        return state

    def load_state_dict(self, state_dict, strict=True):
        """As tuff.nn.load_state_dict(), into this module's state."""
        return load_state_dict(self.state_dict(), dict(state_dict), strict)

    # ---- modes, moves, gradients

    @property
    def training(self):
        """Whether it would compute in training mode now."""
        return training() if self._mode is None else self._mode

    def train(self, mode=True):
        """Training mode from now on, for all parts too, whatever the thread's is."""
        for m in self.modules():
            m.__dict__["_mode"] = bool(mode)
        return self

    def eval(self):
        """train(False)"""
        return self.train(False)

    def apply(self, f):
        """f of every part and of the module, inner ones first."""
        for m in self.children():
            m.apply(f)
        f(self)
        return self

    def to(self, *args, device="", dtype=None):
        """Gives all tensors another device, and those of floats another dtype, in place: optimizers see
        it, and have to be made anew for another device. A list of devices means copies on each of them."""
        for a in args:
            if any(d == a for d in _DTYPES):
                dtype = a
            elif isinstance(a, (str, tuple, list)):
                device = a
            else:
                raise TypeError(f"to(): a device or a dtype is wanted, not {type(a).__name__}")
        if not isinstance(device, str):
            device = ",".join(device)
        tensors = [t for kept in ("_parameters", "_buffers") for _, t in self._named(kept, "", True)]
        _nn.convert_(tensors, device=device, **({} if dtype is None else {"dtype": dtype}))
        return self

    def float(self):
        """to("float32")"""
        return self.to(dtype="float32")

    def half(self):
        """to("float16")"""
        return self.to(dtype="float16")

    def bfloat16(self):
        """to("bfloat16")"""
        return self.to(dtype="bfloat16")

    def double(self):
        """to("float64")"""
        return self.to(dtype="float64")

    def zero_grad(self, set_to_none=True):
        """Takes the parameters' gradients away; zeros take their places unless set_to_none."""
        for t in self.parameters():
            t.grad = None if set_to_none or t.grad is None else t.grad.zeros_like()

    def requires_grad_(self, requires_grad=True):
        """Of all parameters: frozen ones get no gradient, and no optimizer takes them."""
        for t in self.parameters():
            t.requires_grad = requires_grad
        return self

    def register_forward_hook(self, hook):
        """hook(module, args, result) after forward(); what it returns, if not None, is the result."""
        return self._hook(self._hooks, hook)

    def register_forward_pre_hook(self, hook):
        """hook(module, args) before forward(); what it returns, if not None, is what it is given."""
        return self._hook(self._pre_hooks, hook)

    def _hook(self, hooks, hook):
        handle = HookHandle(hooks)
        hooks[handle._key] = hook
        return handle

    def extra_repr(self):
        """What stands between the parentheses of its repr(); for those who derive."""
        return ""

    def __repr__(self):
        parts = [f"({name}): " + repr(m).replace("\n", "\n  ") for name, m in self.named_children()]
        inside = [self.extra_repr()] * bool(self.extra_repr()) + parts
        text = "\n  ".join(["", *inside]) + "\n" if parts else "".join(inside)
        return f"{type(self).__name__}({text})"


class Function(Module):
    """A function as a module: what Sequential makes of those it is given."""
    function: Callable[..., Any]

    def __init__(self, function):
        if not callable(function):
            raise TypeError(f"a module or a function is wanted, not {type(function).__name__}")
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def extra_repr(self):
        return getattr(self.function, "__name__", type(self.function).__name__)


def _as_module(m):
    return m if isinstance(m, Module) else Function(m)


class ModuleList(Module):
    """Modules under their numbers; called by whom they belong to."""

    def __init__(self, modules=()):
        self.extend(modules)

    def append(self, module):
        self._modules[str(len(self))] = _as_module(module)
        return self

    def extend(self, modules):
        for m in modules:
            self.append(m)
        return self

    def insert(self, index, module):
        all_of_them = list(self)
        all_of_them.insert(index, _as_module(module))
        self._modules.clear()
        return self.extend(all_of_them)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules.values()))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index]) if type(self) is ModuleList else type(self)(*list(self)[index])
        return list(self)[index]

    def __setitem__(self, index, module):
        self._modules[str(range(len(self))[index])] = _as_module(module)

    def __delitem__(self, index):
        rest = list(self)
        del rest[index]
        self._modules.clear()
        self.extend(rest)


class Sequential(ModuleList):
    """Modules and functions of one tensor, one after the other; names begin with their number."""

    def __init__(self, *layers):
        self.extend(layers)

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class ModuleDict(Module):
    """Modules under names; called by whom they belong to."""

    def __init__(self, modules=()):
        self.update(modules)

    def update(self, modules):
        for name, m in dict(modules).items():
            self[name] = m
        return self

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules))

    def __contains__(self, name):
        return name in self._modules

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        if not isinstance(name, str) or "." in name:
            raise InvalidArgument(f"{name!r} is no name: a text without dots is one")
        self._modules[name] = _as_module(module)

    def __delitem__(self, name):
        del self._modules[name]
