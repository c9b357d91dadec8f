// The SPIR-V renderer: a linear list becomes one compute module, valid by construction.
// Called by the registry. Must never know Vulkan handles or drivers.
#pragma once

#include "render/renderer.h"

namespace tuff::render {

Source render_spirv(const kernel::LinearKernel& k, const Target& t);
std::string spirv_identity(const Target& t);
// Through SPIRV-Tools' shared library or the spirv-dis program where there is one, else the words.
std::string disassembly(std::span<const uint32_t> words);

}  // namespace tuff::render
