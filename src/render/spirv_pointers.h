// Addresses of elements in buffers and in workgroup memory. Called by the SPIR-V renderer's parts
// that access memory.
#pragma once

#include "render/spirv_body.h"

namespace tuff::render {

Id element_pointer(SpirvBody& b, const ir::Node& index, const SpirvValue& offset);
// The same, for a load or store. The offset's base and `least` are together 0 or more.
Id access_pointer(SpirvBody& b, const ir::Node& index, const SpirvValue& offset, int64_t least);

}  // namespace tuff::render
