// The C renderer: a linear list becomes one C function for clang; many become a few object files.
// Called by the registry. Must never know how objects are loaded.
#pragma once

#include "render/renderer.h"

namespace tuff::render {

Source render_c(const kernel::LinearKernel& k, const Target& t);
std::vector<Binary> compile_c_sources(std::span<const Source> sources, const Target& t);
std::string c_identity(const Target& t);

}  // namespace tuff::render
