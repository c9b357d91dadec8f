// Cooperative matrices of a driver that is not at hand: what is read of one that lists them, what
// is left where capabilities are masked, and the kernels of the self-tests.
#include <algorithm>

#include "base/env.h"
#include "base/os.h"
#include "devices/vulkan/facts/describe.h"
#include "devices/vulkan/facts/facts.h"
#include "devices/vulkan/self_test/matrix_self_test.h"
#include "devices/vulkan/self_test/self_test.h"
#include "devices/vulkan/self_test/verdicts.h"
#include "fixture.h"

namespace tuff::devices::vulkan {
namespace {

PFN_vkGetPhysicalDeviceFeatures2 true_features = nullptr;
PFN_vkEnumerateDeviceExtensionProperties true_extensions = nullptr;
bool has_memory_model = true;

VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
  true_features(device, out);
  for (auto* s = static_cast<VkBaseOutStructure*>(out->pNext); s; s = s->pNext) {
    if (s->sType == kMatrixFeatures)
      reinterpret_cast<VkPhysicalDeviceCooperativeMatrixFeaturesKHR*>(s)->cooperativeMatrix = true;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES)
      reinterpret_cast<VkPhysicalDeviceVulkanMemoryModelFeatures*>(s)->vulkanMemoryModel =
          has_memory_model;
  }
}
VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice device, const char* layer,
                                          uint32_t* count, VkExtensionProperties* out) {
  uint32_t own = 0;
  true_extensions(device, layer, &own, nullptr);
  if (!out) return *count = own + 1, VK_SUCCESS;
  true_extensions(device, layer, &own, out);
  for (uint32_t i = 0; i < own; i++) {
    if (out[i].extensionName == std::string("VK_KHR_shader_bfloat16")) *out[i].extensionName = '?';
  }
  std::strcpy(out[own].extensionName, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL matrices(VkPhysicalDevice, uint32_t* count,
                                        VkCooperativeMatrixPropertiesKHR* out) {
  constexpr auto f16 = VK_COMPONENT_TYPE_FLOAT16_KHR, f32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
  constexpr auto i8 = VK_COMPONENT_TYPE_SINT8_KHR, i32 = VK_COMPONENT_TYPE_SINT32_KHR;
  constexpr auto whole_group = static_cast<VkScopeKHR>(2);
  const VkCooperativeMatrixPropertiesKHR all[] = {
      {kMatrixProperties, nullptr, 16, 16, 16, f16, f16, f32, f32, false, VK_SCOPE_SUBGROUP_KHR},
      {kMatrixProperties, nullptr, 16, 16, 16, f16, f16, f32, f32, false, VK_SCOPE_SUBGROUP_KHR},
      {kMatrixProperties, nullptr, 16, 16, 16, f16, f16, f16, f16, false, VK_SCOPE_SUBGROUP_KHR},
      {kMatrixProperties, nullptr, 16, 16, 32, i8, i8, i32, i32, true, VK_SCOPE_SUBGROUP_KHR},
      {kMatrixProperties, nullptr, 16, 16, 32, i8, i8, i32, i32, false, VK_SCOPE_SUBGROUP_KHR},
      {kMatrixProperties, nullptr, 64, 64, 16, f16, f16, f32, f32, false, whole_group},
      {kMatrixProperties, nullptr, 16, 8, 16, kBfloat16Component, kBfloat16Component, f32, f32,
       false, VK_SCOPE_SUBGROUP_KHR}};
  if (out) std::copy(std::begin(all), std::end(all), out);
  *count = static_cast<uint32_t>(std::size(all));
  return VK_SUCCESS;
}

const MatrixShape kHalf{16, 16, 16, DType::F16, DType::F16, DType::F32};
const MatrixShape kBytes{16, 16, 32, DType::I8, DType::I8, DType::I32};

class Matrices : public VulkanTest {
 protected:
  void SetUp() override {
    has_memory_model = true;
    instance_ = Instance::acquire();
    VkApi& api = instance_->api;
    saved_ = api;
    uint32_t count = 1;
    api.vkEnumeratePhysicalDevices(instance_->handle, &count, &handle_);
    if (count == 0) GTEST_SKIP() << "no Vulkan device";
    true_features = api.vkGetPhysicalDeviceFeatures2;
    true_extensions = api.vkEnumerateDeviceExtensionProperties;
    api.vkGetPhysicalDeviceFeatures2 = features;
    api.vkEnumerateDeviceExtensionProperties = extensions;
    api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = matrices;
  }
  void TearDown() override {
    if (instance_) instance_->api = saved_;
  }

  Facts capable() {
    Facts f = gather_facts(*instance_, handle_);
    f.caps.shaderFloat16 = f.caps.shaderInt16 = f.caps.shaderInt8 = true;
    f.caps.storageBuffer8BitAccess = f.caps.storageBuffer16BitAccess = true;
    return f;
  }
  // As verdicts that an earlier process kept make them; capabilities that are not named passed.
  Facts judged(Verdicts kept) {
    Facts f = capable();
    for (const SelfTest& t : self_tests())
      if (f.caps.*t.cap) kept.emplace(t.name, "passed");
    const std::string path = verdict_path(f);
    os::make_directories(path.substr(0, path.rfind('/')));
    os::write_text(path, verdict_text(self_test_identity(f), kept));
    recall_verdicts(f);
    return f;
  }

  std::shared_ptr<Instance> instance_;
  VkApi saved_;
  VkPhysicalDevice handle_ = VK_NULL_HANDLE;
};

TEST_F(Matrices, WhatADriverListsIsRead) {
  const Facts f = gather_facts(*instance_, handle_);
  EXPECT_TRUE(f.caps.cooperativeMatrix);
  EXPECT_FALSE(f.caps.bfloat16Matrix);
  ASSERT_EQ(f.matrix_shapes.size(), 3u);
  EXPECT_EQ(f.matrix_shapes[0], kHalf);
  EXPECT_EQ(f.matrix_shapes[1], kBytes);
  const std::vector<const char*> named = extensions_to_enable(f);
  EXPECT_TRUE(std::any_of(named.begin(), named.end(), [](const char* n) {
    return std::string(n) == VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
  }));
}

TEST_F(Matrices, OnlyWhatCapabilitiesAllowIsUsed) {
  Facts f = capable();
  EXPECT_EQ(make_target(f).matrix_shapes, (std::vector<MatrixShape>{kHalf, kBytes}));
  f.caps.shaderInt8 = false;
  EXPECT_EQ(make_target(f).matrix_shapes, std::vector<MatrixShape>{kHalf});
  f.caps.bfloat16Matrix = true;
  EXPECT_EQ(make_target(f).matrix_shapes.size(), 2u);
  f.caps.storageBuffer16BitAccess = false;
  EXPECT_TRUE(make_target(f).matrix_shapes.empty());
  f.caps.storageBuffer16BitAccess = true;
  apply_mask(f.caps, "coopmat");
  EXPECT_FALSE(f.caps.cooperativeMatrix || f.caps.bfloat16Matrix);
  EXPECT_TRUE(make_target(f).matrix_shapes.empty());
}

TEST_F(Matrices, TheMemoryModelIsAskedFor) {
  has_memory_model = false;
  const Facts f = gather_facts(*instance_, handle_);
  EXPECT_FALSE(f.caps.cooperativeMatrix);
  EXPECT_TRUE(f.matrix_shapes.empty());
}

TEST_F(Matrices, AShapeThatFailedIsTakenOutAndNamed) {
  const Facts f = judged({{matrix_test_name(kHalf), "sum 3 is 4, not 5"},
                          {matrix_test_name(kBytes), "passed"}});
  EXPECT_TRUE(f.self_tested);
  EXPECT_EQ(f.failed_self_test, "matrix:16x16x16:float16:float16:float32");
  EXPECT_EQ(usable_shapes(f), std::vector<MatrixShape>{kBytes});
}

TEST_F(Matrices, ShapesOfAFailedCapabilityAreNotWaitedFor) {
  const Facts f =
      judged({{"shaderInt8", "value 0 is 1, not 2"}, {matrix_test_name(kHalf), "passed"}});
  EXPECT_TRUE(f.self_tested);
  EXPECT_EQ(f.failed_self_test, "shaderInt8");
  EXPECT_EQ(usable_shapes(f), std::vector<MatrixShape>{kHalf});
}

// The kernels are of matrices, and the reference interpreter gets other sums where one is wrong.
TEST(MatrixSelfTest, ItsKernelsMultiplyMatrices) {
  Target t = builtin_target("spirv-lavapipe");
  const MatrixShape shapes[] = {kHalf, kBytes, {16, 8, 16, DType::BF16, DType::BF16, DType::F32}};
  for (const MatrixShape& s : shapes) {
    for (const MatrixTest test : matrix_tests(s)) {
      const kernel::LinearKernel k = matrix_test_kernel(s, test, t);
      EXPECT_TRUE(std::ranges::any_of(
          k.ops, [](const ir::UOp& u) { return u->op == ir::Op::MatrixMulAdd; }));
      const auto stored = matrix_test_kernel(s, MatrixTest::Stored, t);
      EXPECT_EQ(k.shared_bytes > stored.shared_bytes, test == MatrixTest::Continued);
      Contents right = matrix_test_contents(k), wrong = right;
      run_on_host(k, right);
      double sum = test == MatrixTest::Continued;  // of the first element, by hand
      for (uint32_t r = 0; r < 2 * s.k; ++r) {
        sum += load_scalar(s.a, &right[1][r * size_bytes(s.a)]).as_double() *
               load_scalar(s.b, &right[2][r * 2 * s.n * size_bytes(s.b)]).as_double();
      }
      const DType out = k.buffers[0].dtype;
      EXPECT_EQ(out == DType::F16, test == MatrixTest::Rounded);
      EXPECT_EQ(load_scalar(out, right[0].data()).as_double(),
                Scalar::of_double(DType::F64, sum).cast(out).as_double());
      wrong[1][0] = std::byte(1);
      run_on_host(k, wrong);
      EXPECT_NE(right[0], wrong[0]);
    }
  }
}

}  // namespace
}  // namespace tuff::devices::vulkan
