// The C compiler as a program: finds it, names its version, turns C sources into object files.
// Called by the C renderer and by the CPU device's probe. Knows nothing of kernels or of how
// objects are loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuff::render {

// Path of the compiler: TUFF_CC, else clang-19, clang, clang-18 ... clang-14 on PATH.
std::optional<std::string> find_c_compiler();

// First line of `--version`, part of disk-cache keys; empty if there is no compiler. Cached.
std::string compiler_identity();

// One translation unit and the kernels that it defines.
struct CSource {
  std::string text;
  std::vector<std::string> symbols;
};

// Compiles all at once, one child per unit, at most one per core. Same order as given.
// Throws CompileError with the first lines of the compiler's message, or Unsupported without one.
std::vector<std::vector<uint8_t>> compile_c(std::span<const std::string> translation_units);

}  // namespace tuff::render
