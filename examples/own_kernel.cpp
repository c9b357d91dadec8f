// A training step with an activation of one's own: SwiGLU, x sigmoid(x) y, as a hand-written kernel
// with its gradient as a second one, for Vulkan devices (GLSL) and for the CPU (C). Captured once
// and replayed. Usage: example_own_kernel [DEVICE]
#include <cmath>
#include <cstdio>

#include <tuff/jit.h>
#include <tuff/kernel.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

using tuff::Tensor;
using tuff::Tensors;

constexpr const char* kForwardGlsl = R"(#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { float o[]; };
layout(std430, set = 0, binding = 1) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 2) readonly buffer Y { float y[]; };
void main() {
  const uint k = gl_GlobalInvocationID.x;
  if (k < o.length()) o[k] = x[k] / (1 + exp(-x[k])) * y[k];
})";
constexpr const char* kBackwardGlsl = R"(#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Dx { float dx[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Dy { float dy[]; };
layout(std430, set = 0, binding = 2) readonly buffer G { float g[]; };
layout(std430, set = 0, binding = 3) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 4) readonly buffer Y { float y[]; };
void main() {
  const uint k = gl_GlobalInvocationID.x;
  if (k >= dx.length()) return;
  const float s = 1 / (1 + exp(-x[k]));
  dx[k] = g[k] * y[k] * s * (1 + x[k] * (1 - s));
  dy[k] = g[k] * x[k] * s;
})";
// A workgroup of 64 elements a call, of a length that is a multiple of them.
constexpr const char* kForwardC = R"(
float expf(float);
void swiglu(float* o, const float* x, const float* y, unsigned group) {
  for (unsigned k = group * 64; k < group * 64 + 64; k++) o[k] = x[k] / (1 + expf(-x[k])) * y[k];
})";
constexpr const char* kBackwardC = R"(
float expf(float);
void swiglu_backward(float* dx, float* dy, const float* g, const float* x, const float* y,
                     unsigned group) {
  for (unsigned k = group * 64; k < group * 64 + 64; k++) {
    const float s = 1 / (1 + expf(-x[k]));
    dx[k] = g[k] * y[k] * s * (1 + x[k] * (1 - s));
    dy[k] = g[k] * x[k] * s;
  }
})";

const tuff::Kernel backward({.name = "swiglu_backward", .glsl = kBackwardGlsl, .c = kBackwardC});
const tuff::Kernel forward({.name = "swiglu",
                            .glsl = kForwardGlsl,
                            .c = kForwardC,
                            .gradient = [](const Tensors& g, const Tensors& in) {
                              return backward({g[0], in[0], in[1]},
                                              {{in[0].sizes()}, {in[1].sizes()}},
                                              {in[0].numel() / 64, 1, 1});
                            }});

Tensor swiglu(const Tensor& x, const Tensor& y) {
  return forward({x, y}, {{x.sizes()}}, {x.numel() / 64, 1, 1})[0];
}

int main(int argc, char** argv) {
  const tuff::TensorOptions here{.device = argc > 1 ? argv[1] : ""};
  Tensor::manual_seed(1);
  // sin(a) of 64 angles, from a layer of 64 gated units.
  const Tensor angle = Tensor::linspace(-3, 3, 64, here).reshape({64, 1});
  const Tensor wanted = angle.sin();
  Tensors w;
  using tuff::Sizes;
  for (const Sizes& sizes : {Sizes{1, 64}, Sizes{64}, Sizes{1, 64}, Sizes{64}, Sizes{64, 1}})
    w.push_back((Tensor::randn(sizes, here) * 0.3).realize().set_requires_grad());
  tuff::optim::AdamW optimizer(w, {.lr = 1e-2});
  tuff::Jit step([&](const Tensors& in) -> Tensors {
    const Tensor h = swiglu(in[0].matmul(w[0]) + w[1], in[0].matmul(w[2]) + w[3]);
    Tensor loss = (h.matmul(w[4]) - in[1]).square().mean();
    loss.backward();
    optimizer.step({loss});
    return {loss};
  });
  double loss = 0;
  for (int i = 1; i <= 300; i++) {
    const Tensor& l = step({angle, wanted})[0];
    if (i % 100 == 0) std::printf("step %d: loss %.5f\n", i, loss = l.item());
  }
  return loss < 0.01 ? 0 : 1;
}
