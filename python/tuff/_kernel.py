"""Kernels that users write, as ops of the graph."""
from . import _tuff


class Kernel:
    """A kernel of one's own: scheduled, captured, replayed and ordered against other kernels as they are.

        doubled = tuff.Kernel("doubled", c="void doubled(float* out, const float* in, unsigned x) { out[x] = 2 * in[x]; }")
        y, = doubled([x], [(x.shape, x.dtype)], len(x))

    Arguments are the outputs, then the inputs, each one buffer of its elements in row-major order. What was given for a
    device's language is compiled when the device first runs it: glsl, a compute shader with argument k at
    `layout(std430, set = 0, binding = k) buffer`, or spirv, the bytes of such a module with its entry point (Vulkan);
    c, a function `name` that is called for each workgroup and may take its x, y and z (CPU); opencl, a kernel `name`
    for workgroups of the size `local`. Pointers to inputs are const. `constants` are macros: 32-bit integers or floats.
    backward(gradients, inputs) gives a gradient for each input, None where there is none; it is called once by each
    call, must not read values that depend on the gradients, and may call other kernels."""

    name: str

    def __init__(self, name, *, glsl="", spirv=b"", entry="main", c="", opencl="", local=(1, 1, 1), constants=None,
                 backward=None):
        self.name = name
        self._backward = backward
        self._launch = _tuff.KernelLaunch(name, glsl, spirv, entry, c, opencl, _three(local),
                                          list((constants or {}).items()))

    def __call__(self, inputs, outputs, groups):
        """A tuple of the outputs, each declared as (shape, dtype), of one launch of so many workgroups: a number, or
        up to three along x, y and z."""
        inputs = list(inputs)
        declared = [(tuple(shape), dtype) for shape, dtype in outputs]

        def launch(given):
            return self._launch.launch(given, declared, _three(groups))

        if self._backward is None:
            return tuple(launch(inputs))
        return tuple(_tuff.function_of(launch, lambda gradients: list(self._backward(gradients, inputs)), inputs))


def _three(numbers):
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    if not 1 <= len(numbers) <= 3:
        raise _tuff.InvalidArgument(f"Kernel: {len(numbers)} numbers where there are up to three axes")
    return numbers + (1,) * (3 - len(numbers))
