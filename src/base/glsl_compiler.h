// glslangValidator as a program: finds it (TUFF_GLSLANG), turns a compute shader's text into
// SPIR-V. Called by render for users' kernels. Knows nothing of what a module's buffers are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tuff {

// Path of the compiler: TUFF_GLSLANG, else glslangValidator or glslang on PATH.
std::optional<std::string> find_glsl_compiler();

// A compute shader for Vulkan 1.1 (SPIR-V 1.3). `macros` are defined behind its #version. Throws
// CompileError with the kernel's name and the compiler's message, Unsupported without a compiler.
std::vector<uint32_t> compile_glsl(const std::string& kernel, const std::string& text,
                                   std::span<const std::pair<std::string, std::string>> macros);

}  // namespace tuff
