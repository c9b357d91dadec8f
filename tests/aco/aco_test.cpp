// tuff_aco: what modules ask for, the objects that it writes as the AMD device's loader reads them,
// and what it says where something is missing or damaged. Results of such kernels are compared on
// the emulated GPU by the tests with AMD_COMPILER=aco.
#include <gtest/gtest.h>

#include <cstring>

#include "aco/code_object.h"
#include "aco/shader_interface.h"
#include "base/compilers.h"
#include "base/env.h"
#include "base/os.h"
#include "devices/amd/load/code_object.h"
#include "render/assembled_spirv.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"

namespace tuff::aco {
namespace {

using Words = std::vector<uint32_t>;

constexpr const char* kProcessor = "gfx1100";

Target target() { return builtin_target("aco-gfx1100"); }

std::vector<render::Source> sources() {
  const Target t = target();
  std::vector<render::Source> out;
  for (const kernel::LinearKernel& k :
       {render::elementwise_kernel(), render::row_sum_kernel(), render::shared_sum_kernel()})
    out.push_back(render::renderer_of(t).render(k, t));
  return out;
}

constexpr const char* kLocalSize = "OpExecutionMode %main LocalSize 8 4 2\n";

// A kernel that does `body` with what the others add.
Words module_of(const std::string& decorations, const std::string& variables,
                const std::string& body, const std::string& modes = kLocalSize) {
  const std::string text = R"(OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "start" %in
)" + modes + decorations + R"(
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%v3 = OpTypeVector %u32 3
%v2 = OpTypeVector %u32 2
%one = OpConstant %u32 1
%two = OpConstant %u32 2
%pv3 = OpTypePointer Input %v3
%pu32 = OpTypePointer Input %u32
%in = OpVariable %pv3 Input
)" + variables + R"(
%main = OpFunction %void None %fn
%start = OpLabel
)" + body + R"(
OpReturn
OpFunctionEnd
)";
  return render::assembled_spirv(text);
}

std::array<bool, 3> ids_of(const std::string& body) {
  return interface_of(module_of("OpDecorate %in BuiltIn WorkgroupId", "", body)).uses_workgroup_id;
}

using Ids = std::array<bool, 3>;

TEST(ShaderInterface, WhichIdsOfAWorkgroupAreUsed) {
  EXPECT_EQ(ids_of(""), (Ids{false, false, false}));
  EXPECT_EQ(ids_of("%a = OpLoad %v3 %in\n%x = OpCompositeExtract %u32 %a 0"),
            (Ids{true, false, false}));
  EXPECT_EQ(ids_of("%a = OpLoad %v3 %in\n%x = OpCompositeExtract %u32 %a 2"),
            (Ids{false, false, true}));
  EXPECT_EQ(ids_of("%p = OpAccessChain %pu32 %in %one\n%y = OpLoad %u32 %p"),
            (Ids{false, true, false}));
  EXPECT_EQ(ids_of("%a = OpLoad %v3 %in\n%s = OpIAdd %v3 %a %a"), (Ids{true, true, true}));
  EXPECT_EQ(ids_of("%a = OpLoad %v3 %in\n%s = OpVectorShuffle %v2 %a %a 0 1"),
            (Ids{true, true, true}));
}

TEST(ShaderInterface, EntryAndModes) {
  const ShaderInterface plain = interface_of(module_of("", "", ""));
  EXPECT_EQ(plain.entry, "start");
  EXPECT_EQ(plain.local, (std::array<uint32_t, 3>{8, 4, 2}));
  EXPECT_FALSE(plain.preserves_f32_denormals);
  EXPECT_FALSE(plain.uses_num_workgroups);
  EXPECT_EQ(plain.descriptor_sets, 0u);
  EXPECT_TRUE(interface_of(module_of("", "", "", "OpExecutionMode %main DenormPreserve 32\n"))
                  .preserves_f32_denormals);
  EXPECT_FALSE(interface_of(module_of("", "", "", "OpExecutionMode %main DenormPreserve 16\n"))
                   .preserves_f32_denormals);
  EXPECT_TRUE(
      interface_of(module_of("OpDecorate %in BuiltIn NumWorkgroups", "", "")).uses_num_workgroups);
}

TEST(ShaderInterface, AWorkgroupsSizeMayBeSpecialized) {
  const auto with = [](const std::string& modes, const std::string& decoration,
                       const std::string& size) {
    return interface_of(module_of("OpDecorate %width SpecId 7\n" + decoration,
                                  "%width = OpSpecConstant %u32 16\n" + size, "", modes));
  };
  const std::string by_id = "OpExecutionModeId %main LocalSizeId %two %width %two\n";
  const std::string built_in = "OpDecorate %size BuiltIn WorkgroupSize";
  const auto object = [](const std::string& op) { return "%size = " + op + " %v3 %two %two %two"; };
  const std::array<uint32_t, 3> wide{2, 16, 2}, twos{2, 2, 2}, whole{8, 4, 2};
  const ShaderInterface ids = with(by_id, "", "");
  EXPECT_EQ(ids.local, wide);
  EXPECT_EQ(ids.local_constants[1], 7u);
  EXPECT_FALSE(ids.local_constants[0].has_value() || ids.local_constants[2].has_value());
  EXPECT_EQ(with(kLocalSize, built_in, object("OpConstantComposite")).local, twos);
  EXPECT_EQ(with(by_id, built_in, object("OpSpecConstantComposite")).local, twos);
  EXPECT_EQ(with(kLocalSize, "", object("OpConstantComposite")).local, whole);
}

// Whatever stands in a module, the answer is an interface or a CompileError.
TEST(ShaderInterface, DamagedModules) {
  const Words good = sources()[2].words;
  for (size_t length = 0; length < good.size(); ++length) {
    try {
      interface_of(std::span(good).first(length));
    } catch (const CompileError&) {
    }
  }
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const uint32_t word : {0u, ~0u, good[at] ^ 0x10000u}) {
      Words bad = good;
      bad[at] = word;
      try {
        interface_of(bad);
      } catch (const CompileError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, good.size() / 3);  // other words are ids and literals
  EXPECT_THROW(interface_of({}), CompileError);
}

class Aco : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(why_no_aco_compiler(), ""); }
};

TEST_F(Aco, ObjectsAreThoseThatTheDeviceLoads) {
  const std::vector<render::Source> all = sources();
  const std::vector<render::Binary> binaries =
      render::renderer_of(target()).compile(all, target());
  ASSERT_EQ(binaries.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const auto& generation = *devices::amd::find_generation(std::string_view(kProcessor));
    const devices::amd::CodeObject object(*binaries[i].bytes, generation);
    const devices::amd::KernelDescriptor& d = object.descriptor(all[i].symbol);
    constexpr uint32_t kGranule = 512;  // in which the driver counts it
    EXPECT_EQ(d.group_bytes, (all[i].shared_bytes + kGranule - 1) / kGranule * kGranule);
    EXPECT_EQ(d.private_bytes, 0u);
    constexpr uint64_t kAddress = 0x7f00'1234'5000;
    const devices::amd::KernelCode code = object.kernel(all[i].symbol, kAddress, all[i].local);
    EXPECT_EQ(code.entry % 256, 0u);
    EXPECT_TRUE(code.properties & devices::amd::kWave32);
    // It begins with code and not with zeros, and ends in s_endpgm.
    const std::vector<uint8_t> image = object.image(kAddress);
    uint32_t first = 0;
    std::memcpy(&first, image.data() + d.entry, sizeof first);
    EXPECT_NE(first, 0u);
    constexpr uint32_t kEnd = 0xbfb00000;
    bool ends = false;
    for (size_t at = d.entry; at + 4 <= image.size(); at += 4)
      ends |= std::memcmp(image.data() + at, &kEnd, 4) == 0;
    EXPECT_TRUE(ends);
  }
}

// One object for the kernels of a unit, and the same code as alone.
TEST_F(Aco, SeveralModulesOfOneProcess) {
  const std::vector<render::Source> all = sources();
  std::vector<SpirvKernelModule> unit;
  for (const render::Source& s : all) unit.push_back({s.symbol, s.words});
  const auto together = compile_aco({&unit, 1}, kProcessor);
  ASSERT_EQ(together.size(), 1u);
  const auto& generation = *devices::amd::find_generation(std::string_view(kProcessor));
  const devices::amd::CodeObject object(together[0], generation);
  EXPECT_EQ(object.kernels().size(), all.size());
  for (const SpirvKernelModule& kernel : unit) {
    const std::vector<SpirvKernelModule> one = {kernel};
    const auto alone = compile_aco({&one, 1}, kProcessor);
    const devices::amd::CodeObject single(alone[0], generation);
    const auto &a = object.descriptor(kernel.symbol), &b = single.descriptor(kernel.symbol);
    EXPECT_EQ(a.rsrc1, b.rsrc1);
    EXPECT_EQ(a.rsrc2, b.rsrc2);
    constexpr size_t kSome = 64;
    EXPECT_EQ(std::memcmp(object.image(0).data() + a.entry, single.image(0).data() + b.entry, kSome),
              0);
  }
}

std::string refusal(const std::vector<SpirvKernelModule>& unit, const char* processor) {
  try {
    compile_aco({&unit, 1}, processor);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST_F(Aco, RefusalsNameWhatIsWrong) {
  const Words words = sources()[0].words;
  EXPECT_NE(refusal({{"k", words}}, "gfx906").find("gfx906"), std::string::npos);
  EXPECT_NE(refusal({{"k", std::span(words).first(3)}}, kProcessor).find("no module"),
            std::string::npos);
  const Words counts = module_of("OpDecorate %in BuiltIn NumWorkgroups", "", "");
  EXPECT_NE(refusal({{"k", counts}}, kProcessor).find("NumWorkgroups"), std::string::npos);
  // A kernel's name, where one of several is wrong.
  std::vector<render::Source> some = sources();
  some[1].words.resize(7);
  try {
    render::renderer_of(target()).compile(some, target());
    ADD_FAILURE() << "a damaged module was compiled";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find(some[1].name), std::string::npos) << e.what();
  }
}

TEST(AcoMissing, SaysWhatAndTheRemedy) {
  {
    const EnvOverride none(Env::TUFF_ACO, "/nowhere/tuff_aco");
    EXPECT_NE(why_no_aco_compiler().find("/nowhere/tuff_aco"), std::string::npos);
  }
  {
    const EnvOverride none(Env::TUFF_RADV, TUFF_SOURCE_DIR);  // a folder, but of no system
    EXPECT_NE(why_no_aco_compiler().find("scripts/mesa"), std::string::npos)
        << why_no_aco_compiler();
    EXPECT_TRUE(aco_matrix_shapes().empty());
  }
  const std::string program = *find_aco_compiler();
  const os::ProcessResult r =
      os::Process({"/usr/bin/env", "TUFF_RADV=/nowhere/radv.so", program, "--version"}).wait();
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.err.find("mesa-vulkan-drivers"), std::string::npos) << r.err;
  const os::ProcessResult other =
      os::Process({"/usr/bin/env", "TUFF_RADV=libm.so.6", program, "--version"}).wait();
  EXPECT_NE(other.err.find("no Vulkan driver"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace tuff::aco
