// What VK_KHR_cooperative_matrix (Vulkan 1.3.255, registered number 507) and VK_KHR_shader_bfloat16
// (number 142) add to the API, for headers that do not know them yet; Debian 12 has 1.3.239. Names
// and numbers are those of vk.xml. Declarations alone: who asks a driver includes it.
#pragma once

#include <optional>

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "base/target.h"

#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_cooperative_matrix 1
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"

enum VkComponentTypeKHR : uint32_t {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_SINT32_KHR = 5,
  VK_COMPONENT_TYPE_UINT8_KHR = 7,
};
enum VkScopeKHR : uint32_t { VK_SCOPE_SUBGROUP_KHR = 3 };

struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t* count, VkCooperativeMatrixPropertiesKHR*);
#endif

#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_shader_bfloat16 1
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"

struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};
#endif

namespace tuff {

inline constexpr auto kMatrixFeatures = static_cast<VkStructureType>(1000506000);
inline constexpr auto kMatrixProperties = static_cast<VkStructureType>(1000506001);
inline constexpr auto kBfloat16Features = static_cast<VkStructureType>(1000141000);
inline constexpr auto kBfloat16Component = static_cast<VkComponentTypeKHR>(1000141000);

// The shape of matrices that a subgroup multiplies; none: tuff has no use for it. Sums narrower
// than tuff's own (f16) and those that saturate mean something else.
std::optional<MatrixShape> matrix_shape_of(const VkCooperativeMatrixPropertiesKHR& p);

}  // namespace tuff
