// LLVM's assembler and compiler as oracles and as the source of kernels. Called by the tests of
// emu; they skip where the tools are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tuff::emu::testing {

bool has_llvm_mc();

// llvm-mc's text for each case, none where it knows no such instruction or not all its words belong
// to it.
std::vector<std::optional<std::string>> disassemble(
    const std::vector<std::vector<uint32_t>>& cases);

}  // namespace tuff::emu::testing
