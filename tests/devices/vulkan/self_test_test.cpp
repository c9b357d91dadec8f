// Self-tests of capabilities: they pass on the drivers at hand, find planted and real lies, and
// their verdicts are kept and judged. Each test has a cache folder of its own.
#include <algorithm>
#include <set>
#include <span>

#include "base/os.h"
#include "devices/vulkan/facts/describe.h"
#include "devices/vulkan/facts/select.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "devices/vulkan/self_test/matrix_self_test.h"
#include "devices/vulkan/self_test/self_test.h"
#include "devices/vulkan/self_test/verdicts.h"
#include "fixture.h"
#include "ir/uop.h"
#include "kernel/lowered.h"
#include "render/renderer.h"

#include <spirv/unified1/spirv.hpp>

namespace tuff::devices::vulkan {
namespace {

constexpr size_t kHeaderWords = 5;

// Sums of integers of that width become differences.
uint32_t lying_bits = 8;
PFN_vkCreateShaderModule true_create_module = nullptr;
int modules_made = 0;

VKAPI_ATTR VkResult VKAPI_CALL lying_create_module(VkDevice device,
                                                   const VkShaderModuleCreateInfo* info,
                                                   const VkAllocationCallbacks* memory,
                                                   VkShaderModule* module) {
  ++modules_made;
  std::vector<uint32_t> words(info->pCode, info->pCode + info->codeSize / 4);
  std::set<uint32_t> narrow;  // types
  for (size_t i = kHeaderWords; i < words.size(); i += words[i] >> 16) {
    const uint32_t op = words[i] & 0xffff;
    if (op == spv::OpTypeInt && words[i + 2] == lying_bits) narrow.insert(words[i + 1]);
    if (op == spv::OpIAdd && narrow.contains(words[i + 1]))
      words[i] = (words[i] & 0xffff0000u) | spv::OpISub;
  }
  VkShaderModuleCreateInfo changed = *info;
  changed.pCode = words.data();
  return true_create_module(device, &changed, memory, module);
}

class SelfTests : public VulkanTest {
 protected:
  void SetUp() override {
    modules_made = 0;
    instance_ = Instance::acquire();
    const auto devices = list_devices(*instance_);
    if (devices.empty() || !devices[0].usable()) GTEST_SKIP() << "no usable Vulkan device";
    facts_ = devices[0];
  }
  void TearDown() override {
    close();
    instance_.reset();
  }

  std::unique_ptr<hcq::Device> honest(const Facts& facts) {
    ++opened_;
    return std::make_unique<VulkanDevice>(std::make_shared<Context>(instance_, facts, "VULKAN:0"));
  }
  std::unique_ptr<hcq::Device> lying(const Facts& facts) {
    auto device = honest(facts);
    VkApi& api = vulkan_api(*device);
    true_create_module = api.vkCreateShaderModule;
    api.vkCreateShaderModule = lying_create_module;
    return device;
  }
  OpenTrial honestly() {
    return [this](const Facts& f) { return honest(f); };
  }
  Verdicts kept() {
    return verdicts_from_text(self_test_identity(facts_), os::read_text(verdict_path(facts_)));
  }
  void keep(const Verdicts& v) {
    os::make_directories(folder_.path() + "/vulkan");
    os::write_text(verdict_path(facts_), verdict_text(self_test_identity(facts_), v));
  }
  Verdicts all_passed() {
    Verdicts v;
    for (const SelfTest& t : self_tests())
      if (facts_.caps.*t.cap) v[t.name] = "passed";
    for (const MatrixShape& s : usable_shapes(facts_)) v[matrix_test_name(s)] = "passed";
    return v;
  }

  // 100 + 120 in that dtype, by whatever the target says that the device can do.
  int sum_of(DType t, hcq::Device& device) {
    using namespace ir;
    const UOp i = range(index_const(1), 0, AxisKind::Loop);
    const auto at = [&](int32_t slot, DType t, int64_t e) {
      return make(Op::Index, t, {param(slot, t, 2), i + e});
    };
    const UOp x = cast(make(Op::Load, DType::I32, {at(1, DType::I32, 0)}), t);
    const UOp y = cast(make(Op::Load, DType::I32, {at(1, DType::I32, 1)}), t);
    const UOp store = make(Op::Store, DType::Void, {at(0, DType::I32, 0), cast(x + y, DType::I32)});
    const UOp ast = sink(std::vector<UOp>{make(Op::End, DType::Void, {store, i})});
    const Target& target = device.target();
    const render::Renderer& r = render::renderer_of(target);
    const render::Source source = r.render(kernel::lower(ast, target), target);
    auto programs = device.load(r.compile({&source, 1}, target));
    const hcq::Span out = allocate(256), in = allocate(256);
    const int32_t numbers[64] = {100, 120};
    device.upload(in, numbers);
    hcq::Command c = dispatch(programs[0].get(), arguments({out, in}, {}), 1);
    if (!target.features.device_address) c.buffers = {out, in};
    hcq::CommandList list;
    list.commands.push_back(c);
    run(list);
    return static_cast<int>(words(out)[0]);
  }

  std::shared_ptr<Instance> instance_;
  Facts facts_;
  int opened_ = 0;
};

TEST_F(SelfTests, EachPassesOnThisDriver) {
  auto device = honest(facts_);
  int run = 0;
  for (const SelfTest& t : self_tests()) {
    if (!(facts_.caps.*t.cap)) continue;
    EXPECT_EQ(run_self_test(t, *device, make_target(facts_)), "") << t.name;
    ++run;
  }
  EXPECT_GT(run, 0);
}

// With descriptors: Debian's spirv-val looks through the argument block's address and takes the
// 8-bit elements behind it for push constants.
TEST_F(SelfTests, EachPassesUnderValidation) {
  const uint64_t before = vulkan_validation_message_count();
  instance_.reset();
  open(true, "bda");
  ASSERT_FALSE(IsSkipped());
  EXPECT_EQ(vulkan_validation_message_count(), before);
  EXPECT_FALSE(std::filesystem::is_empty(folder_.path() + "/vulkan"));
}

// What the quirks say of these drivers is true: without the row the self-test finds the fault.
TEST_F(SelfTests, RealFaultsOfKnownDriversAreFound) {
  auto device = honest(facts_);
  for (const SelfTest& t : self_tests()) {
    const std::string name = t.name;
    const bool known_fault = name == "zeroProducts" || name == "exactU32ToF32" ||
                             (name == "roundedF16Casts" && facts_.caps.shaderFloat16) ||
                             (name == "wideQuotients" && facts_.caps.shaderInt64);
    if (facts_.caps.*t.cap || !known_fault) continue;
    Facts f = facts_;
    f.caps.*t.cap = true;
    EXPECT_NE(run_self_test(t, *device, make_target(f)), "") << t.name;
  }
  if (facts_.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE) {
    EXPECT_FALSE(facts_.caps.zeroProducts);
  }
  if (facts_.driver_id == VK_DRIVER_ID_GOOGLE_SWIFTSHADER) {
    EXPECT_FALSE(facts_.caps.exactU32ToF32);
  }
  if (facts_.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY) {
    EXPECT_FALSE(facts_.caps.roundedF16Casts);
    EXPECT_FALSE(facts_.caps.wideQuotients);
  }
}

// Nobody asks these drivers, which promise nothing: one keeps them, the other makes them 0.
TEST_F(SelfTests, DenormalsAreLookedAt) {
  auto device = honest(facts_);
  const auto row = std::ranges::find(self_tests(), &Caps::denormPreserve, &SelfTest::cap);
  const std::string wrong = run_self_test(*row, *device, make_target(facts_));
  if (facts_.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE) {
    EXPECT_EQ(wrong, "");
  }
  if (facts_.driver_id == VK_DRIVER_ID_GOOGLE_SWIFTSHADER) {
    EXPECT_NE(wrong.find("of 0x1 and 0x1 is 0x0"), std::string::npos) << wrong;
  }
}

TEST_F(SelfTests, ALieSwitchesTheCapabilityOff) {
  if (!facts_.caps.shaderInt8 && !facts_.caps.shaderInt16)
    GTEST_SKIP() << "the driver claims no narrow integers";
  lying_bits = facts_.caps.shaderInt8 ? 8 : 16;
  const DType narrow = lying_bits == 8 ? DType::I8 : DType::I16;
  const std::string cap = lying_bits == 8 ? "shaderInt8" : "shaderInt16";
  Facts f = facts_;
  testing::internal::CaptureStderr();
  settle_verdicts(f, "VULKAN:0", [this](const Facts& x) { return lying(x); });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(f.failed_self_test, cap);
  EXPECT_FALSE(lying_bits == 8 ? f.caps.shaderInt8 : f.caps.shaderInt16);
  EXPECT_TRUE(f.self_tested);
  EXPECT_NE(log.find(cap + " fails its self-test"), std::string::npos) << log;
  EXPECT_NE(log.find(f.properties.deviceName), std::string::npos) << log;
  EXPECT_NE(log.find(kept().at(cap)), std::string::npos) << log;
  // Whoever opens and lists it from now on finds the verdict; results are right without.
  open(false);
  ASSERT_FALSE(IsSkipped());
  const TargetFeatures& has = device_->target().features;
  EXPECT_FALSE(lying_bits == 8 ? has.i8 : has.i16);
  VkApi& api = vulkan_api(*device_);
  true_create_module = api.vkCreateShaderModule;
  api.vkCreateShaderModule = lying_create_module;
  EXPECT_EQ(sum_of(narrow, *device_), lying_bits == 8 ? 100 + 120 - 256 : 100 + 120);
  const auto shown = vulkan_probe().at(0).info.features;
  const auto value = [&](const std::string& name) {
    for (const auto& [n, v] : shown)
      if (n == name) return v;
    return std::string("nothing");
  };
  EXPECT_EQ(value(cap), "failed self-test");
  EXPECT_EQ(value("self-tests"), "failed");
}

TEST_F(SelfTests, AVerdictIsKept) {
  Facts first = facts_, second = facts_, probed = facts_;
  recall_verdicts(probed);
  EXPECT_FALSE(probed.self_tested);
  settle_verdicts(first, "VULKAN:0", honestly());
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(kept(), all_passed());
  settle_verdicts(second, "VULKAN:0", honestly());
  EXPECT_EQ(opened_, 1);
  EXPECT_TRUE(second.self_tested);
  recall_verdicts(probed);
  EXPECT_TRUE(probed.self_tested);
}

TEST_F(SelfTests, WithoutCachesTheyRunEachTime) {
  EnvOverride off(Env::TUFF_CACHE, "0");
  for (int i = 1; i <= 2; ++i) {
    Facts f = facts_;
    settle_verdicts(f, "VULKAN:0", honestly());
    EXPECT_EQ(opened_, i);
    EXPECT_TRUE(f.self_tested);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/vulkan"));
}

TEST_F(SelfTests, ADamagedFileIsAsNone) {
  keep(all_passed());
  const std::string good = os::read_text(verdict_path(facts_));
  EXPECT_EQ(verdicts_from_text(self_test_identity(facts_), good), all_passed());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    EXPECT_TRUE(verdicts_from_text(self_test_identity(facts_), bad).empty()) << at;
    EXPECT_TRUE(verdicts_from_text(self_test_identity(facts_), good.substr(0, at)).empty()) << at;
  }
  os::write_text(verdict_path(facts_), good.substr(0, good.size() / 2));
  Facts f = facts_;
  settle_verdicts(f, "VULKAN:0", honestly());
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(kept(), all_passed());
}

TEST_F(SelfTests, OneThatEndedItsProcessHasFailed) {
  const SelfTest& guilty = self_tests()[1];
  if (!(facts_.caps.*guilty.cap)) facts_.caps.*guilty.cap = true;
  keep({{self_tests()[0].name, "passed"}, {guilty.name, "running"}});
  Facts probed = facts_;
  recall_verdicts(probed);
  EXPECT_FALSE(probed.self_tested);
  Facts f = facts_;
  testing::internal::CaptureStderr();
  settle_verdicts(f, "VULKAN:0", honestly());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("an earlier process ended during it"), std::string::npos) << log;
  EXPECT_EQ(f.failed_self_test, guilty.name);
  EXPECT_FALSE(f.caps.*guilty.cap);
  EXPECT_TRUE(f.self_tested);
}

TEST_F(SelfTests, ADriverThatRefusesOrLosesTheDeviceHasFailed) {
  static PFN_vkCreateComputePipelines real = nullptr;
  static int calls = 0;
  calls = 0;
  Facts f = facts_;
  settle_verdicts(f, "VULKAN:0", [this](const Facts& x) {
    auto device = honest(x);
    VkApi& api = vulkan_api(*device);
    real = api.vkCreateComputePipelines;
    api.vkCreateComputePipelines = [](VkDevice d, VkPipelineCache c, uint32_t n,
                                      const VkComputePipelineCreateInfo* i,
                                      const VkAllocationCallbacks* a, VkPipeline* p) {
      return ++calls == 1 ? VK_ERROR_DEVICE_LOST : real(d, c, n, i, a, p);
    };
    return device;
  });
  EXPECT_EQ(opened_, all_passed().size() > 1 ? 2 : 1);  // the rest on another device
  // What the lost test would have allowed, another may need: that one fails by a value.
  int lost = 0;
  for (const auto& [test, verdict] : kept())
    lost += verdict.find("VK_ERROR_DEVICE_LOST") != std::string::npos;
  EXPECT_EQ(lost, 1);
  EXPECT_NE(f.failed_self_test, "");
  EXPECT_TRUE(f.self_tested);
}

// What is tested is what kernels do: shuffles between lanes, in workgroups of several subgroups.
TEST(SelfTestKernels, LanesShareSums) {
  Target t = builtin_target("spirv-lavapipe");
  t.subgroup_size = 32;
  const auto test = std::ranges::find(self_tests(), std::string_view("computeFullSubgroups"),
                                      [](const SelfTest& s) { return std::string_view(s.name); });
  ASSERT_NE(test, self_tests().end());
  const kernel::LinearKernel k = lowered(*test, t);
  EXPECT_GT(std::ranges::count(k.ops, ir::Op::Shuffle, [](const ir::UOp& u) { return u->op; }), 0);
  EXPECT_EQ(k.local[0], 128u) << k.opts;
  t.features.full_subgroups = false;
  const kernel::LinearKernel tree = lowered(*test, t);
  EXPECT_EQ(std::ranges::count(tree.ops, ir::Op::Shuffle, [](const ir::UOp& u) { return u->op; }),
            0);
}

TEST_F(SelfTests, AnotherDriverVersionHasNoVerdict) {
  keep(all_passed());
  Facts f = facts_;
  f.properties.driverVersion += 1;
  recall_verdicts(f);
  EXPECT_FALSE(f.self_tested);
  Facts masked = facts_;
  masked.caps.subgroupShuffle = !masked.caps.subgroupShuffle;
  recall_verdicts(masked);
  EXPECT_FALSE(masked.self_tested);
}

}  // namespace
}  // namespace tuff::devices::vulkan
