// Users' kernels for NVIDIA's GPUs: OpenCL C with what the language has beside its keywords, as far
// as docs/guide/kernels.md says, and the argument block that tuff's launches have in the place of
// parameters. Called by user_kernel.cpp and c_nvptx.cpp. Must never know a device.
#pragma once

#include <string>

namespace tuff::render {

// What clang compiles: types, work items, barriers, atomics and functions of OpenCL C before the
// text.
std::string nvptx_user_text(const std::string& text);

// PTX of a kernel whose parameters are addresses of global memory, as that of one whose only
// parameter is the address of a block of them. CompileError where it uses them in another way.
std::string with_argument_block(const std::string& ptx, const std::string& symbol);

}  // namespace tuff::render
