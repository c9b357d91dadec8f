"""Kernels that users write, from Python. What they compute on other devices is tests/tensor/kernel_test.cpp's."""
import shutil
import unittest

import numpy as np

import tuff

SWIGLU = """
float expf(float);
void swiglu(float* o, const float* x, const float* y, unsigned k) { o[k] = x[k] / (1 + expf(-x[k])) * y[k]; }
"""
GRADIENT = """
float expf(float);
void swiglu_gradient(float* dx, float* dy, const float* g, const float* x, const float* y, unsigned k) {
  const float s = 1 / (1 + expf(-x[k]));
  dx[k] = g[k] * y[k] * s * (1 + x[k] * (1 - s));
  dy[k] = g[k] * x[k] * s;
}
"""
GLSL = """#version 450
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) buffer Out { float o[]; };
layout(std430, set = 0, binding = 1) buffer In { float i[]; };
void main() { const uint k = gl_GlobalInvocationID.x; o[k] = i[k] * FACTOR; }
"""

gradient = tuff.Kernel("swiglu_gradient", c=GRADIENT)


def backward(gradients, inputs):
    x, y = inputs
    return gradient([gradients[0], x, y], [(x.shape, x.dtype), (y.shape, y.dtype)], x.numel())


swiglu = tuff.Kernel("swiglu", c=SWIGLU, backward=backward)


def apply(x, y):
    return swiglu([x, y], [(x.shape, tuff.float32)], x.numel())[0]


class KernelTest(unittest.TestCase):
    def test_values_and_gradients(self):
        x = tuff.randn([3, 5], requires_grad=True)
        y = tuff.randn([3, 5], requires_grad=True)
        np.testing.assert_allclose(apply(x, y).numpy(), (x * x.sigmoid() * y).numpy(), rtol=1e-5, atol=1e-6)
        own = (apply(x, y) * 3).sum().gradient([x, y])
        expected = (x * x.sigmoid() * y * 3).sum().gradient([x, y])
        for a, b in zip(own, expected):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)

    def test_captured(self):
        w = tuff.randn([4, 4], requires_grad=True)
        optimizer = tuff.optim.SGD([w], lr=0.1)

        @tuff.jit
        def step(x):
            loss = apply(x.matmul(w), x).square().mean()
            loss.backward()
            optimizer.step([loss])
            return loss
        losses = [step(tuff.full([2, 4], 1.0 + i % 2).realize()).item() for i in range(8)]
        self.assertTrue(step.captured)
        self.assertLess(losses[-1], losses[1])
        self.assertNotAlmostEqual(losses[-1], losses[-2])

    def test_no_gradient_for_one_input(self):
        half = tuff.Kernel("swiglu", c=SWIGLU, backward=lambda g, inputs: [backward(g, inputs)[0], None])
        x, y = tuff.tensor([1.0, 2.0], requires_grad=True), tuff.tensor([3.0, 4.0], requires_grad=True)
        half([x, y], [([2], "float32")], (2, 1))[0].sum().backward()
        self.assertEqual(x.grad.shape, (2,))
        self.assertIsNone(y.grad)

    def test_wrong_declarations(self):
        wrong = tuff.Kernel("wrong", c="void wrong(float* o, float* i) { o[0] = i[0] = 1; }")
        with self.assertRaisesRegex(tuff.CompileError, r"kernel wrong: parameter 2 .*declared as input 0"):
            wrong([tuff.ones([1])], [([1], tuff.float32)], 1)[0].realize()
        hidden = tuff.Kernel("hidden", c="void hidden(float* o, const float* i) { o[0] = 1; ((float*)i)[0] = 2; }")
        with self.assertRaisesRegex(tuff.Error, r"hidden on CPU wrote to input 0"):  # TUFF_CHECK_HAZARDS is set
            hidden([tuff.ones([1])], [([1], tuff.float32)], 1)[0].realize()

    def test_errors(self):
        x = tuff.ones([1])
        with self.assertRaisesRegex(ValueError, "no text was given"):
            tuff.Kernel("empty")
        with self.assertRaisesRegex(ValueError, "6 bytes"):
            tuff.Kernel("odd", spirv=b"123456")
        with self.assertRaisesRegex(ValueError, "4 numbers"):
            swiglu([x, x], [([1], tuff.float32)], (1, 1, 1, 1))
        with self.assertRaisesRegex(tuff.CompileError, "kernel typo.*(?s:.)*error"):
            tuff.Kernel("typo", c="void typo(float* o, const float* i) { o[0] = }")(
                [x], [([1], tuff.float32)], 1)[0].realize()
        with self.assertRaisesRegex(tuff.Unsupported, "takes C; what was given is GLSL"):
            tuff.Kernel("shader", glsl=GLSL)([x], [([1], tuff.float32)], 1)[0].realize()

    def test_glsl(self):
        vulkan = [d for d in tuff.devices() if d.startswith("VULKAN")]
        if not vulkan or not shutil.which("glslangValidator"):
            self.skipTest("no Vulkan device, or no glslangValidator")
        scaled = tuff.Kernel("scaled", glsl=GLSL, constants={"FACTOR": 2.5})
        x = tuff.tensor([1.0, 2.0, 3.0], device=vulkan[0])
        self.assertEqual(scaled([x], [(x.shape, x.dtype)], len(x))[0].tolist(), [2.5, 5.0, 7.5])


if __name__ == "__main__":
    unittest.main()
