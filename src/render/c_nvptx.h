// PTX for NVIDIA's GPUs: what the C renderer's dialect does not say. Called by the registry; knows
// no device.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "render/renderer.h"

namespace tuff::render {

// As compile_c_sources(), with each kernel's size of a workgroup: clang 19 leaves it out, and
// without it a kernel gets the registers of one of 1,024 threads.
std::vector<Binary> compile_nvptx_sources(std::span<const Source> sources, const Target& t);
// PTX with the size of a kernel's workgroup (.reqntid). CompileError where it has no such kernel.
std::string with_block_size(std::string ptx, const std::string& symbol,
                            const std::array<uint32_t, 3>& local);

}  // namespace tuff::render
