// Cooperative matrices of a physical device: whether it has them, and of which shapes.
#include <algorithm>
#include <optional>

#include "devices/vulkan/facts/facts.h"

namespace tuff::devices::vulkan {

void read_matrices(const VkApi& api, Facts& f, const FeatureChain& chain) {
  if (!f.has_extension(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) ||
      !api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
    return;
  f.caps.cooperativeMatrix =
      chain.matrices.cooperativeMatrix && chain.memory_model.vulkanMemoryModel;
  f.caps.bfloat16Matrix = f.caps.cooperativeMatrix && chain.bfloat16.shaderBFloat16Type &&
                          chain.bfloat16.shaderBFloat16CooperativeMatrix;
  if (!f.caps.cooperativeMatrix) return;
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = kMatrixProperties;
  const auto call = [&](uint32_t* count, auto* all) {
    return api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(f.handle, count, all);
  };
  for (const auto& p : enumerate<VkCooperativeMatrixPropertiesKHR>(call, empty)) {
    const std::optional<MatrixShape> s = matrix_shape_of(p);
    const bool shared_evenly = s && s->m * s->n % f.subgroup_size == 0;
    if (shared_evenly && std::ranges::find(f.matrix_shapes, *s) == f.matrix_shapes.end())
      f.matrix_shapes.push_back(*s);
  }
}

std::vector<MatrixShape> usable_shapes(const Facts& f) {
  const Caps& c = f.caps;
  const auto has = [&](DType t) {
    switch (t) {
      case DType::F16: return c.shaderFloat16 && c.shaderInt16;
      case DType::BF16: return c.bfloat16Matrix;
      case DType::I8:
      case DType::U8: return c.shaderInt8;
      default: return true;
    }
  };
  std::vector<MatrixShape> out;
  if (!c.cooperativeMatrix || !c.storageBuffer8BitAccess || !c.storageBuffer16BitAccess) return out;
  std::ranges::copy_if(f.matrix_shapes, std::back_inserter(out),
                       [&](const MatrixShape& s) { return has(s.a) && has(s.b); });
  return out;
}

}  // namespace tuff::devices::vulkan
