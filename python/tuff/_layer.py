"""_Layer: a layer of C++ as a module, whose tensors are its parameters and buffers."""
from ._module import Module
from ._tuff import Tensor


def _without_inplace(args, kwargs, at):
    if len(args) > at and isinstance(args[at], bool):
        args = args[:at] + args[at + 1:]
    return args, {k: v for k, v in kwargs.items() if k != "inplace"}


class _Layer(Module):
    # What is in C++, and of what class the layers inside of it are.
    _core_class = None
    _part_classes = {}
    _inplace_at = None  # where PyTorch has inplace among the arguments: it changes nothing, memory is planned

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "_core_class" in cls.__dict__:  # signatures, for messages and help()
            def __init__(self, *args, **kwargs):
                if cls._inplace_at is not None:
                    args, kwargs = _without_inplace(args, kwargs, cls._inplace_at)
                self.__dict__["_made_of"] = (args, kwargs)
                self._enclose(cls._core_class(*args, **kwargs))
            __init__.__doc__ = cls._core_class.__init__.__doc__
            cls.__init__ = __init__

    def forward(self, *args, **kwargs):
        return self._core(*args, **kwargs)

    def _enclose(self, core):
        self.__dict__["_core"] = core
        for name, tensor, trained in core.tensors():
            (self._parameters if trained else self._buffers)[name] = tensor
        for name, part in core.parts():
            cls = self._part_classes[name]
            layer = cls.__new__(cls)
            layer._enclose(part)
            self._modules[name] = layer

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if (value is None or isinstance(value, Tensor)) and (name in self._parameters or name in self._buffers):
            self._core.set_tensor(name, value)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or not hasattr(self._core, name):
                raise
            return getattr(self._core, name)

    # Copies and pickles are made of what the layer was made of, and given its tensors.
    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_core"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_made_of" not in state:
            return  # inside of another, which encloses it
        args, kwargs = state["_made_of"]
        device = kwargs.get("device", "")
        drawn = Tensor.get_rng_state(device)
        core = self._core_class(*args, **kwargs)
        Tensor.set_rng_state(drawn, device)
        self._put_into(core)

    def _put_into(self, core):
        self.__dict__["_core"] = core
        for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
            core.set_tensor(name, tensor)
        for name, part in core.parts():
            self._modules[name]._put_into(part)
