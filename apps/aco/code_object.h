// An AMDGPU code object, relocatable, as clang writes them: what the AMD device loads and
// `tuff emu run` executes. Written by main.cpp; knows no driver.
// Source: LLVM, "User Guide for AMDGPU Backend", Code Object Metadata V4 and Kernel Descriptor;
// gABI chapter 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aco/radv.h"
#include "aco/shader_interface.h"
#include "aco/user_registers.h"

namespace tuff::aco {

// The processor's number in e_flags; Unsupported naming the known ones.
uint32_t machine_of(const std::string& processor);

struct CompiledKernel {
  std::string symbol;
  ShaderInterface interface;
  CompiledShader shader;
  // Where given, the kernel takes the driver's own registers, whose contents the metadata names
  // (.user_sgprs); else the address of its argument block.
  std::optional<InputRegisters> registers;
};

std::vector<uint8_t> code_object(std::span<const CompiledKernel> kernels,
                                 const std::string& processor);

}  // namespace tuff::aco
