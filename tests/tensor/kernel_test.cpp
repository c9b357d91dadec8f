// Kernels that users write: values on every device, gradients, capture and replay, wrong
// declarations, errors. What their modules are is tests/render/user_kernel_test.cpp's.
#include <gtest/gtest.h>

#include <cmath>

#include <tuff/jit.h>
#include <tuff/kernel.h>
#include <tuff/optim.h>
#include "base/check.h"
#include "base/glsl_compiler.h"
#include "devices.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "hcq/hazard_guard.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;

// out = x sigmoid(x) y.
constexpr const char* kSwigluGlsl = R"(#version 450
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { float o[]; };
layout(std430, set = 0, binding = 1) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 2) readonly buffer Y { float y[]; };
void main() {
  const uint k = gl_GlobalInvocationID.x;
  if (k < o.length()) o[k] = x[k] / (1 + exp(-x[k])) * y[k];
})";
constexpr const char* kSwigluC = R"(
float expf(float);
void swiglu(float* o, const float* x, const float* y, unsigned g) {
  for (unsigned k = g * 64; k < g * 64 + 64 && k < N; k++)
    o[k] = x[k] / (1 + expf(-x[k])) * y[k];
})";
constexpr const char* kSwigluOpencl = R"(
__kernel void swiglu(__global float* o, __global const float* x, __global const float* y) {
  const uint k = get_global_id(0);
  if (k < N) o[k] = x[k] / (1 + exp(-x[k])) * y[k];
})";
// Both gradients, of the gradient of out, x and y.
constexpr const char* kGradientGlsl = R"(#version 450
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
constexpr const char* kGradientC = R"(
float expf(float);
void swiglu_gradient(float* dx, float* dy, const float* g, const float* x, const float* y,
                     unsigned group) {
  for (unsigned k = group * 64; k < group * 64 + 64 && k < N; k++) {
    const float s = 1 / (1 + expf(-x[k]));
    dx[k] = g[k] * y[k] * s * (1 + x[k] * (1 - s));
    dy[k] = g[k] * x[k] * s;
  }
})";
constexpr const char* kGradientOpencl = R"(
__kernel void swiglu_gradient(__global float* dx, __global float* dy, __global const float* g,
                              __global const float* x, __global const float* y) {
  const uint k = get_global_id(0);
  if (k >= N) return;
  const float s = 1 / (1 + exp(-x[k]));
  dx[k] = g[k] * y[k] * s * (1 + x[k] * (1 - s));
  dy[k] = g[k] * x[k] * s;
})";

class OwnKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const bool needs_glsl = target().renderer == "spirv" || target().renderer == "aco";
    if (needs_glsl && !find_glsl_compiler()) GTEST_SKIP() << "glslangValidator is not there";
  }
  const Target& target() const { return engine::Device::get(GetParam())->target(); }
  bool takes_opencl() const {
    return target().renderer == "opencl" || target().renderer == "nvptx";
  }
  bool is_vulkan() const { return target().renderer == "spirv"; }
  TensorOptions here() const { return {.device = GetParam()}; }
  Tensor numbers(const Floats& v) const { return Tensor::from(v, {int64_t(v.size())}, here()); }
  static Floats values(const Tensor& t) { return t.to_vector<float>(); }

  // Of n elements.
  static Kernel swiglu(int64_t n) {
    const std::array<int64_t, 3> groups{(n + 63) / 64, 1, 1};
    const Kernel backward({.name = "swiglu_gradient",
                           .glsl = kGradientGlsl,
                           .c = kGradientC,
                           .opencl = kGradientOpencl,
                           .local = {64, 1, 1},
                           .constants = {{"N", n}}});
    return Kernel({.name = "swiglu",
                   .glsl = kSwigluGlsl,
                   .c = kSwigluC,
                   .opencl = kSwigluOpencl,
                   .local = {64, 1, 1},
                   .constants = {{"N", n}},
                   .gradient = [=](const Tensors& g, const Tensors& in) {
                     return backward({g[0], in[0], in[1]}, {{in[0].sizes()}, {in[1].sizes()}}, groups);
                   }});
  }
  static Tensor apply(const Kernel& k, const Tensor& x, const Tensor& y) {
    return k({x, y}, {{x.sizes()}}, {(x.numel() + 63) / 64, 1, 1})[0];
  }
  static Tensor reference(const Tensor& x, const Tensor& y) { return x * x.sigmoid() * y; }
  static void expect_near(const Tensor& a, const Tensor& b) {
    const Floats x = values(a), y = values(b);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); i++)
      EXPECT_NEAR(x[i], y[i], 2e-6f * (1 + std::abs(y[i]))) << i;
  }

  // A kernel of one text for each language, whose function is "sample".
  Kernel sample(const std::string& glsl, const std::string& c, const std::string& opencl) const {
    return Kernel({.name = "sample", .glsl = glsl, .c = c, .opencl = opencl});
  }
  std::string refusal(const Kernel& k, const Tensors& in, size_t outputs = 1) const {
    try {
      const std::vector<KernelOutput> declared(outputs, {in[0].sizes()});
      Tensor::realize(k(in, declared, {1, 1, 1}));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};
INSTANTIATE_TEST_SUITE_P(, OwnKernel, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);
#define EXPECT_SAYS(said, part) EXPECT_NE((said).find(part), std::string::npos) << (said)

std::string shader(const std::string& declarations, const std::string& body) {
  return "#version 450\nlayout(local_size_x = 1) in;\n" + declarations + "\nvoid main() {\n" + body +
         "\n}\n";
}
const std::string kOutIn =
    "layout(std430, set = 0, binding = 0) buffer Out { float o[]; };\n"
    "layout(std430, set = 0, binding = 1) buffer In { float i[]; };\n";

TEST_P(OwnKernel, ComputesWhatItSays) {
  const Tensor x = Tensor::randn({10, 37}, here()), y = Tensor::randn({10, 37}, here());
  expect_near(apply(swiglu(370), x, y), reference(x, y));
  // What it reads is computed and laid out first, what reads it is fused with nothing of it.
  expect_near(apply(swiglu(370), x * 2, (y + 1).flip({1})) * 3 + 1,
              reference(x * 2, (y + 1).flip({1})) * 3 + 1);
  expect_near(apply(swiglu(370), x.T(), y.T()), reference(x.T(), y.T()));
  // Numbers, which are no memory before.
  const Tensor two = Tensor::full({370}, 2, here());
  expect_near(apply(swiglu(370), two, two), reference(two, two));
}

TEST_P(OwnKernel, IsOneLaunch) {
  const Tensor x = numbers(Floats(100, 0.5f)), y = numbers(Floats(100, 2));
  Tensor::realize({x, y});
  const Kernel backward = swiglu(100);
  const auto launches = [&](const Tensors& t) {
    const uint64_t kernels = engine::counters().kernels, copies = engine::counters().copies;
    Tensor::realize(t);
    return engine::counters().kernels - kernels + engine::counters().copies - copies;
  };
  EXPECT_EQ(launches({apply(backward, x, y)}), 1u);
  Tensor a = x.clone().set_requires_grad(), b = y.clone().set_requires_grad();
  Tensor::realize({a, b});
  const Tensors g = apply(backward, a, b).sum().gradient({a, b});
  // Ones, and both gradients by one launch.
  EXPECT_LE(launches(g), 2u);
}

TEST_P(OwnKernel, GradientsAreTheGivenOnes) {
  const Tensor x = Tensor::randn({200}, here()), y = Tensor::randn({200}, here());
  const Tensor weights = Tensor::randn({200}, here());
  Tensor a = x.clone().set_requires_grad(), b = y.clone().set_requires_grad();
  Tensor::realize({x, y, a, b, weights});
  const Kernel k = swiglu(200);
  const Tensors own = (apply(k, a * 2, b) * weights).sum().gradient({a, b});
  const Tensors expected = (reference(a * 2, b) * weights).sum().gradient({a, b});
  for (size_t i = 0; i < 2; i++) expect_near(own[i], expected[i]);
  // One of them alone; the other is written all the same.
  expect_near((apply(k, a * 2, b) * weights).sum().gradient({b})[0], expected[1]);
}

TEST_P(OwnKernel, WithoutAGradientItSaysSo) {
  const Kernel k = sample(shader(kOutIn, "o[0] = i[0];"),
                          "void sample(float* o, const float* i) { o[0] = i[0]; }",
                          "__kernel void sample(__global float* o, __global const float* i) { o[0] = i[0]; }");
  Tensor x = numbers({3}).set_requires_grad();
  const auto y = [&] { return k({x}, {{{1}}}, {1, 1, 1})[0]; };
  EXPECT_EQ(values(y()), Floats{3});
  try {
    y().sum().backward();
    FAIL();
  } catch (const Unsupported& e) {
    EXPECT_SAYS(std::string(e.what()), "kernel sample has no gradient");
  }
}

// A training step with the kernel as its activation, captured and replayed, gives the losses that
// the same step of tensors gives.
TEST_P(OwnKernel, TrainsCapturedAndReplayed) {
  constexpr int64_t kRows = 8, kWidth = 24;
  const auto losses = [&](bool own) {
    Tensor::manual_seed(7);
    const auto weight = [&](int64_t rows, int64_t columns) {
      return (Tensor::randn({rows, columns}, here()) * 0.3).realize().set_requires_grad();
    };
    Tensor w1 = weight(6, kWidth), w2 = weight(6, kWidth), w3 = weight(kWidth, 1);
    Tensor::realize({w1, w2, w3});
    optim::SGD optimizer({w1, w2, w3}, {.lr = 0.01});
    const Kernel k = swiglu(kRows * kWidth);
    Jit step([&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      const Tensor x = in[0].matmul(w1), y = in[0].matmul(w2);
      const Tensor h = own ? apply(k, x, y) : reference(x, y);
      Tensor loss = (h.matmul(w3) - in[1]).square().mean();
      loss.backward();
      optimizer.step({loss});
      return {loss};
    });
    Floats out;
    for (int i = 0; i < 12; i++) {
      const Tensor x = Tensor::randn({kRows, 6}, here()), t = Tensor::randn({kRows, 1}, here());
      Tensor::realize({x, t});
      out.push_back(float(step({x, t})[0].item()));
    }
    EXPECT_TRUE(step.captured());
    return out;
  };
  const Floats own = losses(true), expected = losses(false);
  for (size_t i = 0; i < own.size(); i++)
    EXPECT_NEAR(own[i], expected[i], 1e-4f * (1 + std::abs(expected[i]))) << i;
  EXPECT_LT(own.back(), own.front());
}

TEST_P(OwnKernel, ReplaysReadWhatTheyAreGiven) {
  const Kernel k = swiglu(300);
  Jit step([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{apply(k, in[0], in[1])};  // inputs of the graph, patched
  });
  for (int i = 0; i < 6; i++) {
    const Tensor x = Tensor::randn({300}, here()), y = Tensor::randn({300}, here());
    Tensor::realize({x, y});
    expect_near(step({x, y})[0], reference(x, y));
  }
  EXPECT_TRUE(step.captured());
}

TEST_P(OwnKernel, OutputsHaveShapesAndDtypesOfTheirOwn) {
  KernelOptions options{
      .name = "sample",
      .glsl = shader("layout(std430, set = 0, binding = 0) buffer A { int a[]; };\n"
                     "layout(std430, set = 0, binding = 1) buffer B { float b[]; };\n"
                     "layout(std430, set = 0, binding = 2) readonly buffer In { float i[]; };\n",
                     "b[0] = i[0] * S; b[1] = i[1] * S; a[0] = int(i[0]) + N;"),
      .c = "void sample(int* a, float* b, const float* i) {"
           " b[0] = i[0] * S; b[1] = i[1] * S; a[0] = (int)i[0] + N; }",
      .opencl = "__kernel void sample(__global int* a, __global float* b, __global const float* i) {"
                " b[0] = i[0] * S; b[1] = i[1] * S; a[0] = (int)i[0] + N; }"};
  const Tensor x = numbers({7, 9});
  EXPECT_SAYS(refusal(Kernel(options), {x}, 2), "N");  // no such macro
  options.constants = {{"N", -4}, {"S", 0.5}};
  const Kernel k(options);
  const std::vector<KernelOutput> outputs{{{1}, DType::I32}, {{2, 1}, DType::F32}};
  const Tensors y = k({x}, outputs, {1, 1, 1});
  EXPECT_EQ(y[0].dtype(), DType::I32);
  EXPECT_EQ(y[1].sizes(), (Sizes{2, 1}));
  EXPECT_EQ(y[0].to_vector<int32_t>(), std::vector<int32_t>{3});
  EXPECT_EQ(values(y[1]), (Floats{3.5f, 4.5f}));
  // The second alone: the first is written all the same.
  EXPECT_EQ(values(k({x + 1}, outputs, {1, 1, 1})[1] * 2), (Floats{8, 10}));
}

// Workgroups of 64 that turn what each of them has in memory of its own, and count themselves.
TEST_P(OwnKernel, WorkItemsShareLocalMemory) {
  if (!takes_opencl()) GTEST_SKIP() << "it takes no OpenCL C";
  const Kernel k({.name = "turned",
                  .opencl = R"(
__kernel void turned(__global float4* o, __global int* groups, __global const float4* i) {
  __local float4 tile[64];
  __local int count;
  const uint own = get_local_id(0), first = (uint)get_group_id(0) * (uint)get_local_size(0);
  if (own == 0) count = 0;
  tile[own] = i[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&count, 1);
  o[first + own] = tile[63 - own];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (own == 0) groups[get_group_id(0)] = count * (int)get_num_groups(0) + max(count, 65);
})",
                  .local = {64, 1, 1}});
  const int64_t n = 64 * 3 * 4;
  const Tensors y = k({Tensor::arange(0, n, 1, {.dtype = DType::F32, .device = GetParam()})},
                      {{{n}}, {{3}, DType::I32}}, {3, 1, 1});
  EXPECT_EQ(y[1].to_vector<int32_t>(), std::vector<int32_t>(3, 64 * 3 + 65));
  const Floats got = values(y[0]);
  for (int64_t at = 0; at < n; at++) {
    const int64_t group = at / 256, place = at % 256 / 4;
    ASSERT_EQ(got[size_t(at)], float(group * 256 + (63 - place) * 4 + at % 4)) << at;
  }
}

// Within three units in the last place, as OpenCL C promises, and what lies beyond floats.
TEST_P(OwnKernel, ExponentialsOfOpenclAreRight) {
  if (!takes_opencl()) GTEST_SKIP() << "it takes no OpenCL C";
  const Kernel k({.name = "exponentials",
                  .opencl = R"(
__kernel void exponentials(__global float* o, __global const float* i) {
  const uint k = get_global_id(0);
  o[k] = exp(i[k]);
})"});
  Floats x{-INFINITY, -150, INFINITY, 89, 88.7f, 0, -0.0f, 1, NAN};
  for (int at = -870; at < 880; at++) x.push_back(float(at) * 0.1f);
  const Tensor in = numbers(x);
  const Floats got = values(k({in}, {{in.sizes()}}, {in.numel(), 1, 1})[0]);
  for (size_t at = 0; at < x.size(); at++) {
    const double wanted = std::exp(double(x[at]));
    if (std::isnan(x[at])) EXPECT_TRUE(std::isnan(got[at]));
    else if (wanted > 3.5e38 || wanted < 1e-45) EXPECT_EQ(got[at], float(wanted)) << x[at];
    else EXPECT_NEAR(got[at], wanted, wanted * 3 * 0x1p-23) << x[at];
  }
}

// Memory is assigned what is computed of it by a kernel that reads its other elements.
TEST_P(OwnKernel, MemoryIsAssignedWhatReadsIt) {
  const Kernel turned = sample(
      shader(kOutIn, "for (int k = 0; k < 4; k++) o[k] = i[3 - k];"),
      "void sample(float* o, const float* i) { for (int k = 0; k < 4; k++) o[k] = i[3 - k]; }",
      "__kernel void sample(__global float* o, __global const float* i) { for (int k = 0; k < 4; k++) o[k] = i[3 - k]; }");
  Tensor x = numbers({1, 2, 3, 4});
  x.realize();
  const Tensor before = x + 0;
  x.assign(turned({x}, {{{4}}}, {1, 1, 1})[0]);
  const Tensor twice = turned({x}, {{{4}}}, {1, 1, 1})[0];
  EXPECT_EQ(values(x), (Floats{4, 3, 2, 1}));
  EXPECT_EQ(values(before), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(values(twice), (Floats{1, 2, 3, 4}));
}

// A write that the text does not show: what is declared to be read is compared.
TEST_P(OwnKernel, AWriteToAnInputIsFoundByItsBytes) {
  if (is_vulkan() || target().renderer == "aco") GTEST_SKIP() << "modules show it";
  if (!hcq::checking_hazards()) GTEST_SKIP() << "TUFF_CHECK_HAZARDS is not set";
  const Kernel k = sample(
      "", "void sample(float* o, const float* i) { o[0] = i[0]; ((float*)i)[1] = 5; }",
      "__kernel void sample(__global float* o, __global const float* i) { o[0] = i[0]; ((__global float*)i)[1] = 5; }");
  EXPECT_SAYS(refusal(k, {numbers({1, 2})}), "kernel sample on " + GetParam() + " wrote to input 0 (argument 1)");
}

TEST_P(OwnKernel, AWrongDeclarationIsFound) {
  const Kernel k = sample(
      shader(kOutIn, "o[0] = i[0]; i[0] = 1;"),
      "void sample(float* o, float* i) { o[0] = i[0]; i[0] = 1; }",
      "__kernel void sample(__global float* o, __global float* i) { o[0] = i[0]; i[0] = 1; }");
  const std::string said = refusal(k, {numbers({1, 2})});
  EXPECT_SAYS(said, "kernel sample");
  EXPECT_SAYS(said, "declared as input 0");
  EXPECT_SAYS(said, "eclare it as an output");
}

TEST_P(OwnKernel, CompilersSayWhatIsWrong) {
  const std::string said = refusal(
      sample(shader(kOutIn, "o[0] = nonsense(i[0]);"),
             "void sample(float* o, const float* i) { o[0] = nonsense(i[0]; }",
             "__kernel void sample(__global float* o, __global const float* i) { o[0] = nonsense(i[0]; }"),
      {numbers({1})});
  EXPECT_SAYS(said, "kernel sample");
  EXPECT_SAYS(said, "nonsense");
}

TEST_P(OwnKernel, CallsAreChecked) {
  const Kernel k = swiglu(4);
  const Tensor x = numbers({1, 2, 3, 4});
  EXPECT_THROW(k({}, {{{4}}}, {1, 1, 1}), InvalidArgument);
  EXPECT_THROW(k({x, x}, {}, {1, 1, 1}), InvalidArgument);
  EXPECT_THROW(k({x, x}, {{{0}}}, {1, 1, 1}), ShapeError);
  EXPECT_THROW(k({x, x}, {{{4}}}, {0, 1, 1}), InvalidArgument);
  EXPECT_THROW(Kernel({.name = "a b", .c = "x"}), InvalidArgument);
  EXPECT_THROW(Kernel({.name = "a"}), InvalidArgument);
  EXPECT_THROW(Kernel({.name = "a", .c = "x", .constants = {{"N", int64_t{1} << 40}}}), InvalidArgument);
  EXPECT_THROW(vmap([&](const Tensor& v) { return apply(k, v, v); })(x.reshape({1, 4})), Unsupported);
  try {
    const Tensor ones = Tensor::ones({4}, here()), y = apply(k, ones, ones);
    const ir::UOp node(detail::uop(y).get());
    ir::interpret({&node, 1}, {});
    FAIL();
  } catch (const Unsupported& e) {
    EXPECT_SAYS(std::string(e.what()), "the reference interpreter does not run swiglu");
  }
}

// Workgroup memory, helper functions, vectors; as SPIR-V.
TEST_P(OwnKernel, ModulesAreRun) {
  if (!is_vulkan()) GTEST_SKIP() << "it takes no SPIR-V";
  const std::string text = R"(#version 450
layout(local_size_x = 32) in;
layout(std430, set = 0, binding = 0) buffer Out { vec4 o[]; };
layout(std430, set = 0, binding = 1) readonly buffer In { vec4 i[]; };
shared vec4 part[32];
vec4 doubled(uint k) { return i[k] * 2; }
void main() {
  const uint l = gl_LocalInvocationID.x;
  part[l] = doubled(l);
  barrier();
  o[l] = part[31 - l] + float(i.length());
})";
  const Kernel k({.name = "turned", .spirv = compile_glsl("turned", text, {})});
  const Tensor x = Tensor::randn({32, 4}, here());
  const Tensor y = k({x}, {{x.sizes()}}, {1, 1, 1})[0];
  expect_near(y, x.flip({0}) * 2 + 32);
}

// Run with TUFF_GLSLANG naming no program.
TEST(OwnKernelText, AMissingCompilerIsNamed) {
  const std::vector<std::string> vulkan = vulkan_devices();
  if (vulkan.empty()) GTEST_SKIP() << "no Vulkan device";
  if (find_glsl_compiler()) GTEST_SKIP() << "glslangValidator is there";
  const Tensor x = Tensor::ones({1}, {.device = vulkan[0]});
  const Kernel k({.name = "alone", .glsl = shader(kOutIn, "o[0] = i[0];")});
  std::string said;
  try {
    k({x}, {{{1}}}, {1, 1, 1})[0].realize();
  } catch (const Unsupported& e) {
    said = e.what();
  }
  EXPECT_SAYS(said, "kernel alone: no compiler for GLSL: install glslangValidator");
}

}  // namespace
}  // namespace tuff::test
