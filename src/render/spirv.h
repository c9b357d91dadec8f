// The SPIR-V renderer: a linear list becomes one compute module, valid by construction.
// Called by the registry. Must never know Vulkan handles or drivers.
#pragma once

#include "render/renderer.h"

namespace tuff::render {

Source render_spirv(const kernel::LinearKernel& k, const Target& t);
std::string spirv_identity(const Target& t);

// The same for a GPU of AMD's that is driven directly: its objects are made by Mesa's compiler.
Source render_aco(const kernel::LinearKernel& k, const Target& t);
std::vector<Binary> compile_aco_sources(std::span<const Source> sources, const Target& t);
std::string aco_identity(const Target& t);

// Through SPIRV-Tools' shared library or the spirv-dis program where there is one, else the words.
std::string disassembly(std::span<const uint32_t> words);

}  // namespace tuff::render
