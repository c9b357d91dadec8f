// LLVM's assembler and compiler as oracles and as the source of kernels. Called by the tests of
// emu, which fail where the tools are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tuff::emu::testing {

// What is missing of LLVM 19 and how to get it; "" where all is there.
std::string why_no_llvm();

// llvm-mc's text for each case, none where it knows no such instruction or not all its words belong
// to it.
std::vector<std::optional<std::string>> disassemble(
    const std::vector<std::vector<uint32_t>>& cases);

// A C file compiled for gfx1100: the bytes of a relocatable code object.
std::vector<uint8_t> compile_device(const std::string& source, const std::string& level = "-O2",
                                    const std::vector<std::string>& options = {});
// The same for NVIDIA's sm_86: a text of PTX.
std::string compile_ptx(const std::string& source, const std::string& level = "-O2");
// The same for this machine: a path to a shared library, and how to be rid of it.
std::string compile_host(const std::string& source, const std::string& folder);
// Assembly for gfx1100, assembled.
std::vector<uint8_t> assemble(const std::string& text);
// A kernel named "kernel" of one wave's code, as assemble() takes it: s[0:1] has the address of its
// arguments, s2 the workgroup, v0 the lane.
std::string kernel_assembly(const std::string& code, uint32_t lds_bytes = 0, uint32_t vgprs = 16);
// A relocatable code object as a linked one, as compilers hand them to drivers.
std::vector<uint8_t> link(const std::vector<uint8_t>& object);

}  // namespace tuff::emu::testing
