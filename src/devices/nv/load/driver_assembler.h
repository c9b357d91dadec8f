// The assembler of PTX that NVIDIA's driver brings along, for the GPUs of this machine: a library
// with the PTX Compiler API, opened at run time. Used by nv.cpp for iface NVK. Source: NVIDIA, "PTX
// Compiler APIs" 12.4; that the driver's library exports them: libnvidia-ptxjitcompiler of 535.261.03
// and 550.163.01.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff::devices::nv {

inline constexpr const char* kDriverAssembler = "libnvidia-ptxjitcompiler.so.1";

// An object file for compute capability `sm`. CompileError with the library's log, Unsupported
// where there is no library.
std::vector<uint8_t> assemble_by_driver(const std::string& ptx, uint32_t sm,
                                        const std::string& library = kDriverAssembler);

}  // namespace tuff::devices::nv
