#include "devices/vulkan/program/executables.h"

#include <vector>

#include <fmt/format.h>

namespace tuff::devices::vulkan {
namespace {

std::string text_of(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return fmt::format("{} {}", s.name, s.value.b32 ? "yes" : "no");
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return fmt::format("{} {}", s.name, s.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return fmt::format("{} {}", s.name, s.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return fmt::format("{} {:.6g}", s.name, s.value.f64);
    default: return s.name;
  }
}

std::string statistics_text(const Context& c, const VkPipelineExecutableInfoKHR& which) {
  const auto all = enumerate<VkPipelineExecutableStatisticKHR>(
      [&](uint32_t* count, auto* to) {
        c.api.vkGetPipelineExecutableStatisticsKHR(c.device, &which, count, to);
      },
      {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR, nullptr, {}, {}, {}, {}});
  std::string text;
  for (const auto& s : all) text += (text.empty() ? "" : ", ") + text_of(s);
  return text;
}

// The texts' sizes are told by the first call, the texts written by the second.
std::string forms_text(const Context& c, const VkPipelineExecutableInfoKHR& which) {
  using Form = VkPipelineExecutableInternalRepresentationKHR;
  const auto call = [&](uint32_t* count, Form* to) {
    return c.api.vkGetPipelineExecutableInternalRepresentationsKHR(c.device, &which, count, to);
  };
  std::vector<Form> forms =
      enumerate<Form>(call, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR,
                             nullptr, {}, {}, false, 0, nullptr});
  std::vector<std::string> texts(forms.size());
  for (size_t i = 0; i < forms.size(); i++) {
    texts[i].resize(forms[i].dataSize);
    forms[i].pData = texts[i].data();
  }
  uint32_t count = uint32_t(forms.size());
  if (count == 0 || call(&count, forms.data()) < 0) return {};
  std::string text;
  for (size_t i = 0; i < count; i++)
    if (forms[i].isText) text += fmt::format("\n{}:\n{}", forms[i].name, texts[i].c_str());
  return text;
}

}  // namespace

VkPipelineCreateFlags describable(const Context& c) {
  if (!c.facts.caps.pipelineExecutableInfo || !c.api.vkGetPipelineExecutablePropertiesKHR ||
      !c.api.vkGetPipelineExecutableStatisticsKHR ||
      !c.api.vkGetPipelineExecutableInternalRepresentationsKHR)
    return 0;
  return VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
         VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
}

std::string described(const Context& c, VkPipeline pipeline) {
  VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  info.pipeline = pipeline;
  const auto executables = enumerate<VkPipelineExecutablePropertiesKHR>(
      [&](uint32_t* count, auto* to) {
        c.api.vkGetPipelineExecutablePropertiesKHR(c.device, &info, count, to);
      },
      {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR, nullptr, 0, {}, {}, 0});
  std::string text;
  for (uint32_t i = 0; i < executables.size(); i++) {
    VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    which.pipeline = pipeline;
    which.executableIndex = i;
    text += fmt::format("{}{}: subgroup size {}, {}{}", i ? "\n" : "", executables[i].name,
                        executables[i].subgroupSize, statistics_text(c, which),
                        forms_text(c, which));
  }
  return text;
}

}  // namespace tuff::devices::vulkan
