// Users' kernels: their modules with addresses are valid, and what is not as it was declared is
// refused by name. What they compute is tests/tensor/kernel_test.cpp's.
#include <gtest/gtest.h>

#include "render/user_kernel.h"

#include <spirv-tools/libspirv.hpp>

#include "base/check.h"
#include "base/glsl_compiler.h"
#include "base/split_mix.h"
#include "ir/custom_kernel.h"
#include "render/user_function.h"
#include "render/user_nvptx.h"

namespace tuff::render {
namespace {

using ir::CustomKernel;
using ir::CustomKernelArg;

struct Given {
  std::string glsl, c, opencl, entry = "main";
  std::vector<uint32_t> spirv;
};

// Of `outputs` outputs and `inputs` inputs of 64 floats.
ir::UOp launch(const Given& of, size_t outputs = 1, size_t inputs = 1) {
  auto k = make_ref<CustomKernel>();
  k->name = "sample";
  k->glsl = of.glsl;
  k->spirv = of.spirv;
  k->c = of.c;
  k->opencl = of.opencl;
  k->entry = of.entry;
  std::vector<ir::UOp> src;
  for (size_t i = 0; i < inputs; i++) src.push_back(ir::param(int32_t(i), DType::F32, 64));
  const std::vector<ir::CustomOutput> declared(outputs, {{64}, DType::F32});
  const CustomKernelArg arg(Ref<const CustomKernel>(k.get()), {2, 1, 1}, declared, 0);
  return ir::custom_kernel_ast(*ir::custom_kernel(arg, src));
}
Given glsl(const std::string& declarations, const std::string& body) {
  Given k;
  k.glsl = "#version 450\nlayout(local_size_x = 32) in;\n" + declarations + "\nvoid main() {\n" +
           body + "\n}\n";
  return k;
}
Given in_c(const std::string& text) {
  Given k;
  k.c = text;
  return k;
}

constexpr const char* kOut = "layout(std430, set = 0, binding = 0) buffer Out { float o[]; };\n";
constexpr const char* kIn = "layout(std430, set = 0, binding = 1) buffer In { float i[]; };\n";
const std::string kBoth = std::string(kOut) + kIn;
constexpr const char* kCopy = "const uint k = gl_GlobalInvocationID.x;\no[k] = i[k];";

std::string refusal(const Given& k, const Target& t, size_t outputs = 1, size_t inputs = 1) {
  try {
    user_kernel(launch(k, outputs, inputs), t);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
Target vulkan(bool addresses) {
  Target t = builtin_target("spirv-generic");
  t.features.device_address = addresses;
  return t;
}
#define EXPECT_SAYS(said, part) EXPECT_NE((said).find(part), std::string::npos) << (said)

class UserGlsl : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_glsl_compiler()) GTEST_SKIP() << "glslangValidator is not there";
  }
  static void expect_valid(const Given& k, size_t outputs = 1, size_t inputs = 1) {
    for (const bool addresses : {true, false}) {
      const UserKernel u = user_kernel(launch(k, outputs, inputs), vulkan(addresses));
      spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_1);
      std::string said;
      tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&,
                                   const char* text) { said += std::string(text) + "\n"; });
      EXPECT_TRUE(tools.Validate(u.source.words)) << said;
      std::string text;
      tools.Disassemble(u.source.words, &text);
      EXPECT_EQ(text.find("DescriptorSet") == std::string::npos, addresses) << text;
      EXPECT_EQ(text.find("PhysicalStorageBuffer64") != std::string::npos, addresses) << text;
      EXPECT_EQ(u.linear.local[0], 32u);
    }
  }
};

TEST_F(UserGlsl, ModulesWithAddressesAreValid) {
  expect_valid(glsl(kBoth, kCopy));
  // Functions of their own, loops, workgroup memory, lengths, atomics, coherent memory.
  expect_valid(glsl(kBoth + "shared float s[32];\nfloat at(uint k) { return i[k]; }\n"
                            "void put(uint k, float v) { o[k] = v; }",
                    "s[gl_LocalInvocationID.x] = at(gl_GlobalInvocationID.x);\nbarrier();\n"
                    "float sum = 0;\nfor (int k = 0; k < 32; k++) sum += s[k];\n"
                    "if (gl_GlobalInvocationID.x < o.length()) put(gl_GlobalInvocationID.x, sum);"));
  expect_valid(glsl("layout(std430, set = 0, binding = 0) coherent buffer Out { uint o[]; };\n" +
                        std::string(kIn),
                    "atomicAdd(o[0], uint(i[gl_GlobalInvocationID.x]));\no[1] = o[0];"));
  expect_valid(glsl("struct P { vec2 a; float b; mat2 m; };\n"
                    "layout(std430, set = 0, binding = 0) buffer Out { float first; vec4 o[]; };\n"
                    "layout(std430, set = 0, binding = 1) readonly buffer In { P p[2]; vec3 i[]; };\n",
                    "first = i.length();\no[0] = vec4(p[0].a, p[1].b, p[1].m[1].x);\n"
                    "o[1].yz = i[1].xy;\no[gl_LocalInvocationID.x] = vec4(i[0], 1);"));
}

TEST_F(UserGlsl, VectorsClaimTheirAlignment) {
  const auto alignment = [](const std::string& type) {
    const std::string out =
        "layout(std430, set = 0, binding = 0) buffer Out { " + type + " o[]; };\n";
    return user_kernel(launch(glsl(out + kIn, "o[0] = " + type + "(i[0]);")), vulkan(true))
        .alignment;
  };
  EXPECT_EQ(alignment("float"), 4u);
  EXPECT_EQ(alignment("vec2"), 8u);
  EXPECT_EQ(alignment("vec4"), 16u);
}

TEST_F(UserGlsl, WhatWritesAnInputIsFound) {
  for (const char* write : {"i[0] = 1;", "i[gl_GlobalInvocationID.x] += o[0];"}) {
    const std::string said = refusal(glsl(kBoth, std::string(kCopy) + write), vulkan(true));
    EXPECT_SAYS(said, "kernel sample: it writes to binding 1, which is declared as input 0");
    EXPECT_SAYS(said, "Declare it as an output");
    EXPECT_EQ(said, refusal(glsl(kBoth, std::string(kCopy) + write), vulkan(false)));
  }
  const std::string words = "layout(std430, set = 0, binding = 1) buffer In { uint i[]; };\n";
  EXPECT_SAYS(refusal(glsl(kOut + words, "o[0] = atomicAdd(i[0], 1u);"), vulkan(true)),
              "it writes to binding 1");
  EXPECT_SAYS(refusal(glsl(kBoth + "void f(uint k) { i[k] = 2; }", "o[0] = 1; f(1);"), vulkan(true)),
              "it writes to binding 1");
  EXPECT_SAYS(refusal(glsl(kBoth, "float x = i[0] + o[0]; if (x > 1) return;"), vulkan(true)),
              "it writes nothing to binding 0, which is declared as output 0");
}

TEST_F(UserGlsl, WhatIsNotAsDeclaredIsRefused) {
  const Target t = vulkan(true);
  EXPECT_SAYS(refusal(glsl(kOut, "o[0] = 1;"), t), "0 buffers have binding 1, and one has to: input 0");
  EXPECT_SAYS(refusal(glsl(kBoth, kCopy), t, 1, 2), "0 buffers have binding 2");
  EXPECT_SAYS(refusal(glsl(kBoth + "layout(std430, set = 0, binding = 2) buffer X { float x[]; };",
                           "o[0] = i[0] + x[0];"),
                      t),
              "its 2 arguments are bindings 0 to 1 of set 0");
  EXPECT_SAYS(refusal(glsl(kOut + std::string("layout(std430, set = 1, binding = 1) buffer In { "
                                              "float i[]; };"),
                           kCopy),
                      t),
              "set 1, binding 1");
  EXPECT_SAYS(refusal(glsl(kBoth + "layout(push_constant) uniform P { float p; };", "o[0] = i[0] + p;"), t),
              "push constants");
  EXPECT_SAYS(refusal(glsl(kBoth + "layout(set = 0, binding = 2) uniform P { float p; };",
                           "o[0] = i[0] + p;"),
                      t),
              "uniform block");
  EXPECT_SAYS(refusal(glsl(kBoth, "o[0] = nothing;"), t), "sample.comp:7: 'nothing' : undeclared");
}

TEST_F(UserGlsl, CapabilitiesThatTheDeviceLacksAreNamed) {
  Target t = vulkan(true);
  t.features.f64 = false;
  EXPECT_SAYS(refusal(glsl(kBoth, "o[0] = float(double(i[0]) / 3.0lf);"), t),
              "it needs Float64 (SPIR-V's capability 10)");
  t.features.f64 = true;
  EXPECT_EQ(refusal(glsl(kBoth, "o[0] = float(double(i[0]) / 3.0lf);"), t), "");
}

TEST_F(UserGlsl, ModulesAreTakenAsTheyAre) {
  Given k;
  k.spirv = compile_glsl("sample", glsl(kBoth, kCopy).glsl, {});
  k.entry = "main";
  EXPECT_EQ(refusal(k, vulkan(true)), "");
  Given other = k;
  other.entry = "other";
  EXPECT_SAYS(refusal(other, vulkan(true)), "no compute shader \"other\"; its entry points are: main");
  // No beginning of a module is one.
  for (size_t n = 1; n < k.spirv.size(); n++) {
    Given cut = k;
    cut.spirv.resize(n);
    EXPECT_NE(refusal(cut, vulkan(true)), "") << n;
  }
}

// Words changed, dropped and cut off: an error of tuff's, or a module for the driver to judge.
TEST_F(UserGlsl, DamagedModulesAreErrors) {
  Given k;
  const std::string more =
      kBoth + "layout(std430, set = 0, binding = 2) buffer M { int n; vec4 v[2]; mat2 m[]; };\n";
  const std::vector<uint32_t> whole = compile_glsl(
      "sample", glsl(more, "o[n] = i[o.length()] + v[n].x + m[m.length() - 1][0][n];").glsl, {});
  SplitMix64 random(1);
  int refused = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; trial++) {
    k.spirv = whole;
    for (uint64_t edits = 1 + random.below(uint64_t{3}); edits > 0; edits--) {
      const size_t at = size_t(random.below(k.spirv.size()));
      switch (random.below(4)) {
        case 0: k.spirv[at] = uint32_t(random.next()); break;
        case 1: k.spirv[at] ^= 1u << random.below(32); break;
        case 2: k.spirv.erase(k.spirv.begin() + std::ptrdiff_t(at)); break;
        default: k.spirv.resize(at + 1);
      }
    }
    refused += !refusal(k, vulkan(true), 1, 2).empty();
  }
  EXPECT_GT(refused, kTrials / 2);
  k.spirv = whole;
  EXPECT_EQ(refusal(k, vulkan(true), 1, 2), "");
}

TEST_F(UserGlsl, WorkgroupsBeyondTheDeviceAreRefused) {
  Given k = glsl(kBoth, kCopy);
  Target small = vulkan(true);
  EXPECT_EQ(refusal(k, small), "");
  small.max_invocations = 16;
  EXPECT_SAYS(refusal(k, small), "32x1x1 invocations");
  small = vulkan(true);
  small.max_local[0] = 16;
  EXPECT_SAYS(refusal(k, small), "32x1x1 invocations");
}

TEST(UserKernel, AnUnknownWordIsNoModule) {
  Given k;
  k.spirv = {1, 2, 3, 4, 5, 6};
  EXPECT_SAYS(refusal(k, vulkan(true)), "its SPIR-V is no module (6 words)");
}

TEST(UserKernel, ParametersAreRead) {
  const auto of = [](const char* text) { return parameters_of(text, "f"); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(of("void f(float* a, const float *b) {}"), (Texts{"float* a", "const float *b"}));
  EXPECT_EQ(of("void f(void);\n/* void f(int x) {} */ static void g(int f) { f(1); }\nvoid f(void)\n{}"),
            Texts{});
  EXPECT_EQ(of("#define F void f(int q) {\nconst char* s = \"void f(int z) {\";\nvoid f(int y) { }"),
            Texts{"int y"});
  EXPECT_EQ(of("void f(int (*g)(int, int), int x) {}"), (Texts{"int (*g)(int, int)", "int x"}));
  EXPECT_EQ(of("void of(int x) {} void f_(int x) {}"), std::nullopt);
  EXPECT_EQ(of("void f(int x);"), std::nullopt);
  EXPECT_EQ(of("void f(int x"), std::nullopt);
  EXPECT_EQ(of("f("), std::nullopt);
}

TEST(UserKernel, FunctionsOfCAreAsDeclared) {
  const Target t = builtin_target("c-x86-64");
  EXPECT_EQ(refusal(in_c("void sample(float* o, const float* i) { o[0] = i[0]; }"), t), "");
  EXPECT_EQ(refusal(in_c("void sample(float* o, const float* i, unsigned x) { o[x] = i[x]; }"), t), "");
  EXPECT_SAYS(refusal(in_c("void sample(float* o, float* i) { o[0] = i[0]; }"), t),
              "parameter 2 (\"float* i\") may be written, and is declared as input 0");
  EXPECT_SAYS(refusal(in_c("void sample(const float* i, float* o) { o[0] = i[0]; }"), t),
              "parameter 1 (\"const float* i\") is const, and is declared as output 0");
  EXPECT_SAYS(refusal(in_c("void sample(float* o) { o[0] = 1; }"), t),
              "its C takes 1 parameters; 2 pointers are declared");
  EXPECT_SAYS(refusal(in_c("void sample(float* o, float i) { o[0] = i; }"), t), "and no pointer");
  EXPECT_SAYS(refusal(in_c("void other(float* o, const float* i) { o[0] = i[0]; }"), t),
              "its C defines no function sample");
}

TEST(UserKernel, ParametersOfPtxBecomeWordsOfABlock) {
  const std::string head = "//\n.visible .entry f(\n\t.param .u64 f_param_0,\n\t.param .u64 f_param_1\n";
  EXPECT_EQ(with_argument_block(head + ")\n{\n\tld.param.u64 \t%rd4, [f_param_1];\n"
                                       "\t@%p1 ld.param.u64 %rd2, [f_param_0];\n\tret;\n}\n",
                                "f"),
            "//\n.visible .entry f(\n\t.param .u64 f_param_0\n)\n{\n"
            "\tld.param.u64 \t%rd4, [f_param_0];\n\tld.global.nc.u64 \t%rd4, [%rd4+8];\n"
            "\t@%p1 ld.param.u64 \t%rd2, [f_param_0];\n\t@%p1 ld.global.nc.u64 \t%rd2, [%rd2+0];\n"
            "\tret;\n}\n");
  for (const char* other : {"\tmov.b64 %rd1, [f_param_1];\n", "\tld.param.u64 %rd1, [f_param_1+4];\n",
                            "\tld.param.u64 %rd1, [f_param_1"})
    EXPECT_THROW(with_argument_block(head + ")\n{\n" + other, "f"), CompileError) << other;
  EXPECT_THROW(with_argument_block(head, "g"), CompileError);
  EXPECT_THROW(with_argument_block(head, "f"), CompileError);
}

TEST(UserKernel, ADeviceWithoutItsLanguageIsNamed) {
  const Given k = in_c("void sample(float* o, const float* i) { o[0] = i[0]; }");
  EXPECT_SAYS(refusal(k, vulkan(true)), "takes GLSL or SPIR-V; what was given is C");
  for (const char* target : {"opencl-generic", "nvptx-sm_86"})
    EXPECT_SAYS(refusal(k, builtin_target(target)), "takes OpenCL C; what was given is C");
  EXPECT_SAYS(refusal(k, builtin_target("amdgpu-gfx1100")), "AMD_COMPILER=aco");
}

}  // namespace
}  // namespace tuff::render
