// What a driver says of a pipeline that it compiled (VK_KHR_pipeline_executable_properties):
// registers, spills, occupancy, machine code, in its own words. For people; called by the loader at
// TUFF_DEBUG=7. Must never steer anything: drivers name and count these things as they like.
#pragma once

#include <string>

#include "devices/vulkan/facts/context.h"

namespace tuff::devices::vulkan {

// Flags to create a pipeline with that described() is called for; 0 where the driver cannot.
VkPipelineCreateFlags describable(const Context& context);
// A line of statistics for each executable of the pipeline, the texts of its forms below it.
std::string described(const Context& context, VkPipeline pipeline);

}  // namespace tuff::devices::vulkan
