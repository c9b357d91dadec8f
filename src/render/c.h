// The C renderer: a linear list becomes one function in a dialect of C; many become a few object
// files. Called by the registry. Must never know how objects are loaded.
#pragma once

#include "render/c_dialect.h"
#include "render/renderer.h"

namespace tuff::render {

Source render_c(const CDialect& d, const kernel::LinearKernel& k, const Target& t);
std::vector<Binary> compile_c_sources(const CDialect& d, std::span<const Source> sources,
                                      const Target& t);
std::string c_identity(const CDialect& d, const Target& t);

}  // namespace tuff::render
