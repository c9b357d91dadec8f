// `tuff gpu --spirv` as users run it: shaders with descriptors, push constants and specialization
// constants, whose results are read back; tuff's own calling convention; what is said of inputs
// that are missing or wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/os.h"
#include "render/assembled_spirv.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"

namespace tuff {
namespace {

// out[i] = a[i] + scale * b[i] for i < n; the workgroup's size and the scale can be specialized.
constexpr const char* kAdd = R"(OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "add" %id
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %size BuiltIn WorkgroupSize
OpDecorate %local SpecId 0
OpDecorate %scale SpecId 1
OpDecorate %row ArrayStride 4
OpDecorate %floats Block
OpMemberDecorate %floats 0 Offset 0
OpDecorate %constants Block
OpMemberDecorate %constants 0 Offset 0
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 2
OpDecorate %out DescriptorSet 1
OpDecorate %out Binding 5
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%f32 = OpTypeFloat 32
%v3 = OpTypeVector %u32 3
%local = OpSpecConstant %u32 1
%scale = OpSpecConstant %f32 1
%zero = OpConstant %u32 0
%one = OpConstant %u32 1
%size = OpSpecConstantComposite %v3 %local %one %one
%row = OpTypeRuntimeArray %f32
%floats = OpTypeStruct %row
%constants = OpTypeStruct %u32
%pv3 = OpTypePointer Input %v3
%pfloats = OpTypePointer StorageBuffer %floats
%pf32 = OpTypePointer StorageBuffer %f32
%pconstants = OpTypePointer PushConstant %constants
%pu32 = OpTypePointer PushConstant %u32
%id = OpVariable %pv3 Input
%a = OpVariable %pfloats StorageBuffer
%b = OpVariable %pfloats StorageBuffer
%out = OpVariable %pfloats StorageBuffer
%push = OpVariable %pconstants PushConstant
%main = OpFunction %void None %fn
%start = OpLabel
%whole = OpLoad %v3 %id
%i = OpCompositeExtract %u32 %whole 0
%pn = OpAccessChain %pu32 %push %zero
%n = OpLoad %u32 %pn
%inside = OpULessThan %bool %i %n
OpSelectionMerge %end None
OpBranchConditional %inside %do %end
%do = OpLabel
%pa = OpAccessChain %pf32 %a %zero %i
%pb = OpAccessChain %pf32 %b %zero %i
%po = OpAccessChain %pf32 %out %zero %i
%x = OpLoad %f32 %pa
%y = OpLoad %f32 %pb
%t = OpFMul %f32 %scale %y
%s = OpFAdd %f32 %x %t
OpStore %po %s
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
)";

// out[i] = 1000 * subgroup + 100 * workgroups + push[workgroup] + uniforms[workgroup]: at an offset
// that only a run knows push constants are read through their address, and a uniform buffer by
// loads of scalars.
constexpr const char* kInputs = R"(OpCapability Shader
OpCapability GroupNonUniform
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %id %groups %subgroup %group
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %groups BuiltIn NumWorkgroups
OpDecorate %subgroup BuiltIn SubgroupId
OpDecorate %group BuiltIn WorkgroupId
OpDecorate %row ArrayStride 4
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %four ArrayStride 4
OpDecorate %constants Block
OpMemberDecorate %constants 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
OpDecorate %sixteen ArrayStride 16
OpDecorate %uniforms Block
OpMemberDecorate %uniforms 0 Offset 0
OpDecorate %more DescriptorSet 0
OpDecorate %more Binding 3
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%v3 = OpTypeVector %u32 3
%zero = OpConstant %u32 0
%count = OpConstant %u32 4
%hundred = OpConstant %u32 100
%thousand = OpConstant %u32 1000
%row = OpTypeRuntimeArray %u32
%block = OpTypeStruct %row
%four = OpTypeArray %u32 %count
%constants = OpTypeStruct %four
%sixteen = OpTypeArray %u32 %count
%uniforms = OpTypeStruct %sixteen
%puniforms = OpTypePointer Uniform %uniforms
%pv3 = OpTypePointer Input %v3
%pin = OpTypePointer Input %u32
%pblock = OpTypePointer Uniform %block
%pu32 = OpTypePointer Uniform %u32
%pconstants = OpTypePointer PushConstant %constants
%pconstant = OpTypePointer PushConstant %u32
%id = OpVariable %pv3 Input
%groups = OpVariable %pv3 Input
%subgroup = OpVariable %pin Input
%group = OpVariable %pv3 Input
%out = OpVariable %pblock Uniform
%push = OpVariable %pconstants PushConstant
%more = OpVariable %puniforms Uniform
%main = OpFunction %void None %fn
%start = OpLabel
%whole = OpLoad %v3 %id
%i = OpCompositeExtract %u32 %whole 0
%sizes = OpLoad %v3 %groups
%gx = OpCompositeExtract %u32 %sizes 0
%s = OpLoad %u32 %subgroup
%which = OpLoad %v3 %group
%k = OpCompositeExtract %u32 %which 0
%pp = OpAccessChain %pconstant %push %zero %k
%p = OpLoad %u32 %pp
%s1 = OpIMul %u32 %s %thousand
%g1 = OpIMul %u32 %gx %hundred
%sum = OpIAdd %u32 %s1 %g1
%sum2 = OpIAdd %u32 %sum %p
%pm = OpAccessChain %pu32 %more %zero %k
%m = OpLoad %u32 %pm
%sum3 = OpIAdd %u32 %sum2 %m
%po = OpAccessChain %pu32 %out %zero %i
OpStore %po %sum3
OpReturn
OpFunctionEnd
)";

using render::assembled_spirv;

class GpuShader : public testing::Test {
 protected:
  GpuShader() {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("tuff-shader-{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  ~GpuShader() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  template <class T>
  std::string write(const std::string& name, const std::vector<T>& values) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    os::write_file(path(name), {bytes, values.size() * sizeof(T)});
    return path(name);
  }
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const std::vector<uint8_t> bytes = os::read_file(path(name));
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
  }

  os::ProcessResult run(std::vector<std::string> options) const {
    const auto program = std::filesystem::path(os::own_program()).parent_path() / "tuff";
    options.insert(options.begin(), {program.string(), "gpu"});
    return os::Process(options).wait();
  }

  // Of the add shader with 300 elements in 5 workgroups of 64; `more` replaces options of the same
  // name by coming later, or adds some.
  std::vector<std::string> add_options(const std::vector<std::string>& more = {}) const {
    std::vector<float> a(300), b(300);
    for (size_t i = 0; i < a.size(); ++i) a[i] = float(i), b[i] = float(1000 - i);
    std::vector<std::string> out = {"--spirv", write("add.spv", assembled_spirv(kAdd)),
                                    "--groups", "5,1,1",
                                    "--constant", "0=64",
                                    "--constant", "1=0.5",
                                    "--push", "300",
                                    "--buffer", "0:0=1200:file=" + write("a", a),
                                    "--buffer", "0:2=1200:file=" + write("b", b),
                                    "--buffer", "1:5=1280",
                                    "--out", "1:5=" + path("out"), "--json"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  // Its options without the one that is named, and its value.
  static std::vector<std::string> without(std::vector<std::string> options,
                                          const std::string& value) {
    const auto at = std::find(options.begin(), options.end(), value);
    EXPECT_NE(at, options.end()) << value;
    options.erase(at - 1, at + 1);
    return options;
  }

  void expect_failure(const std::vector<std::string>& options, int exit_code,
                      const std::string& said) const {
    const os::ProcessResult r = run(options);
    EXPECT_EQ(r.exit_code, exit_code) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << "wanted: " << said << "\nsaid: " << r.err;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(GpuShader, DescriptorsAndConstants) {
  const os::ProcessResult r = run(add_options());
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<float> out = read<float>("out");
  ASSERT_EQ(out.size(), 320u);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i < 300 ? float(i) + 0.5f * float(1000 - i) : 0) << i;
  const Json row = Json::parse(r.out.substr(0, r.out.find('\n')));
  EXPECT_EQ(row["kernel"], "add.spv");
  EXPECT_EQ(row["waves"], 10);  // of 32 lanes: 5 workgroups of 64
  EXPECT_EQ(row["right"], true);
  // Two loads and a store of 300 floats; the lines are those that 1200 bytes fill.
  EXPECT_GE(row["bytes"].get<int>(), 3 * 1200);
  EXPECT_GT(row["time_us"].get<double>(), 0);
}

TEST_F(GpuShader, WhatIsBeyondABufferReadsAsZero) {
  const auto options = without(without(add_options({"--push", "320"}), "300"),
                               "0:0=1200:file=" + path("a"));
  std::vector<std::string> shorter = options;
  const std::vector<float> sevens(100, 7);
  shorter.insert(shorter.end(), {"--buffer", "0:0=400:file=" + write("sevens", sevens)});
  const os::ProcessResult r = run(shorter);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<float> out = read<float>("out");
  ASSERT_EQ(out.size(), 320u);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], (i < 100 ? 7 : 0) + (i < 300 ? 0.5f * float(1000 - i) : 0)) << i;
}

TEST_F(GpuShader, WorkgroupsSubgroupsUniformsAndPushConstantsByAddress) {
  // The third workgroup's uniform lies beyond the buffer.
  const std::vector<uint32_t> uniforms = {50000, 0, 0, 0, 60000};
  const os::ProcessResult r =
      run({"--spirv", write("inputs.spv", assembled_spirv(kInputs)), "--groups", "3,1,1", "--push",
           "1,2,u32:3,i32:4", "--buffer", "0=768", "--buffer",
           "3=20:file=" + write("uniforms", uniforms), "--out", "0=" + path("out")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<uint32_t> out = read<uint32_t>("out");
  ASSERT_EQ(out.size(), 192u);
  const uint32_t read[] = {50000, 60000, 0};
  for (uint32_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], 1000 * (i / 32 % 2) + 300 + 1 + i / 64 + read[i / 64]) << i;
}

TEST_F(GpuShader, AKernelOfTuffs) {
  const Target target = builtin_target("aco-gfx1100");
  const auto words = render::renderer_of(target).render(render::elementwise_kernel(), target).words;
  std::vector<float> x(32), y(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i), y[i] = -20;
  const os::ProcessResult r =
      run({"--spirv", write("k.spv", words), "--groups", "4,1,1", "--argument", "buffer=128",
           "--argument", "buffer=128:file=" + write("x", x), "--argument",
           "buffer=128:file=" + write("y", y), "--out", "0=" + path("out")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<float> out = read<float>("out");
  ASSERT_EQ(out.size(), 32u);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], std::max(2 * float(i) - 20, 0.0f));
}

TEST_F(GpuShader, WhatTheEmulatorFindsWrongFailsTheRun) {
  const Target target = builtin_target("aco-gfx1100");
  const auto words = render::renderer_of(target).render(render::elementwise_kernel(), target).words;
  const os::ProcessResult r =
      run({"--spirv", write("k.spv", words), "--groups", "4,1,1", "--argument", "buffer=64",
           "--argument", "buffer=128", "--argument", "buffer=128"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.err.find("unmapped access"), std::string::npos) << r.err;
}

TEST_F(GpuShader, InputsThatAreMissingOrWrong) {
  const auto good = add_options();
  const auto with = [&](std::vector<std::string> more) { return add_options(more); };
  expect_failure(without(good, "1:5=1280"), 2, "--out 1:5");
  expect_failure(without(without(good, "1:5=1280"), "1:5=" + path("out")), 1,
                 "buffer 1:5 is not given");
  expect_failure(with({"--buffer", "0:7=4"}), 1, "no buffer 0:7; it has 0:0, 0:2, 1:5");
  expect_failure(with({"--buffer", "0:0=4"}), 2, "twice");
  expect_failure(with({"--buffer", "0:0"}), 2, "SET:BINDING=BYTES");
  expect_failure(with({"--buffer", "0:7=0"}), 2, "no size");
  expect_failure(with({"--buffer", "0:7=4:ones"}), 2, "random-f32");
  expect_failure(with({"--buffer", "0:7=4:file=" + path("a")}), 2, "more than the buffer's 4");
  expect_failure(with({"--constant", "7=1"}), 1, "no specialization constant 7; it has 0, 1");
  for (const std::string width : {"0=0", "0=1025", "0=100000", "0=4294967295"}) {
    std::vector<std::string> options = without(good, "0=64");
    options.insert(options.end(), {"--constant", width});
    expect_failure(options, 1, "a workgroup of " + width.substr(2) + " x 1 x 1 invocations");
  }
  expect_failure(with({"--constant", "0=x"}), 2, "'x' is no u32");
  expect_failure(with({"--constant", "0=32"}), 2, "0 is there twice");
  expect_failure(without(good, "300"), 1, "push constants are 4 bytes; 0 are given");
  expect_failure(with({"--entry", "subtract"}), 1, "no compute entry point 'subtract'");
  expect_failure(with({"--groups", "0,1,1"}), 2, "--groups");
  expect_failure(with({"--argument", "u32:1"}), 2, "--argument");
  expect_failure({"--buffer", "0:0=4"}, 2, "--spirv");
  expect_failure({"--spirv", path("nothing.spv")}, 1, "nothing.spv");
  expect_failure(with({"--chip", "9999xyz"}), 1, "7900xtx");
}

TEST_F(GpuShader, DamagedFiles) {
  const std::vector<uint32_t> whole = assembled_spirv(kAdd);
  const std::vector<uint8_t> text = {'v', 'o', 'i', 'd', ' ', 'm', 'a', 'i'};
  expect_failure({"--spirv", write("text", text)}, 1, "no module");
  expect_failure({"--spirv", write("empty", std::vector<uint8_t>{})}, 1, "no module");
  std::vector<uint8_t> odd(whole.size() * sizeof whole[0] - 1);
  std::memcpy(odd.data(), whole.data(), odd.size());
  expect_failure({"--spirv", write("odd", odd)}, 1, "no whole words");
  const std::vector<uint32_t> half(whole.begin(), whole.begin() + ptrdiff_t(whole.size() / 2));
  expect_failure({"--spirv", write("half", half)}, 1, "the module is not valid: ");
}

// From SPIR-V 1.4 on the entry point names its buffers too, which this one does not.
TEST_F(GpuShader, ModulesThatAreNotValid) {
  const std::vector<uint32_t> words = assembled_spirv(kAdd, SPV_ENV_UNIVERSAL_1_6);
  expect_failure({"--spirv", write("new", words)}, 1, "the module is not valid: ");
}

// Debian 12's validator is older than cooperative matrices, whose capability this one names; so is
// its driver, which crashes.
TEST_F(GpuShader, ModulesThatAreNewerThanTheValidator) {
  constexpr uint32_t kCapability = 2u << 16 | 17, kCooperativeMatrix = 6022;
  std::vector<uint32_t> words = assembled_spirv(kAdd);
  words.insert(words.begin() + 5, {kCapability, kCooperativeMatrix});
  std::vector<std::string> options = add_options();
  options[1] = write("newer.spv", words);
  if (!std::getenv("TUFF_RADV"))
    return expect_failure(options, 1, "SPIRV-Tools here does not know capability 6022");
  const os::ProcessResult r = run(options);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read<float>("out")[10], 10 + 0.5f * 990);
}

}  // namespace
}  // namespace tuff
