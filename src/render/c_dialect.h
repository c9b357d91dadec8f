// CDialect: what differs between the C that CPUs and GPUs are given, one row each: the CPU's is C,
// those of GPUs are in the style of OpenCL C. The walker (c_kernel.h) writes names that the row's
// prelude defines, so that most of a dialect is its prelude. Read by the C renderer's files. Must
// never know UOps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/target.h"
#include "kernel/lowered.h"
#include "render/binary.h"
#include "render/prelude.h"

namespace tuff::render {

struct CDialect {
  BinaryFormat format;
  // The Vector range becomes lanes of vector types. Else each of its lanes is a variable, as of the
  // other lane ranges; what is beside each other in memory is for the compiler to find.
  bool simd = false;
  // A group is a workgroup of several work-items, with ids, memory in common, barriers and
  // subgroups, and the kernel's arguments are those of its function. Else a group is one call of a
  // function that is given the argument block, the group's coordinates and scratch memory.
  bool workgroups = false;
  // The functions, constants and arguments of OpenCL: a buffer is an object and a byte offset into
  // it. Else the compiler's builtins, and addresses.
  bool library = false;
  // The kernel's one argument is the address of its argument block; else the block is its
  // arguments.
  bool block_by_address = false;
  // The suffix of 64-bit literals. OpenCL's "ll" are 128 bits wide: arithmetic on them does not wrap at 64.
  const char* wide_suffix;
  // Loads of several elements at once have to be aligned, so the compiler is told which are: by
  // TUFF_ALIGNED(pointer, bytes) of the prelude. Memory begins at multiples of 16 bytes.
  bool claims_alignment = false;
  bool f16 = false;  // is a type with arithmetic; else its bits are u16
  Prelude prelude;
  // What stands before "void": ends with a space, or is empty.
  std::string (*attributes)(const kernel::LinearKernel&, const Target&);
  // An object file for each unit. Throws as compile_c does. Null where the device's driver
  // compiles.
  std::vector<std::vector<uint8_t>> (*compile)(std::span<const std::string> units,
                                               const Target&) = nullptr;
  std::string (*identity)(const Target&);  // of the compiler and what it compiles for
};

const CDialect& c_cpu();
const CDialect& c_amdgpu();
const CDialect& c_nvptx();
const CDialect& c_opencl();
// With halves where the target has them; the prelude is the same.
const CDialect& c_opencl(const Target& t);

// What preludes have in common. Quotients, rounding to odd: after the scalar types.
void add_arithmetic(Prelude& p);
// GPUs: atomic operations on words of buffers. After TUFF_EXCHANGE(word, held, wanted), which gives
// what was there before, and TUFF_AS(T, x).
void add_atomics(Prelude& p);
// Cooperative matrices: which lane holds which elements, and how they are multiplied.
void add_matrices(Prelude& p, std::string_view places, std::string_view products);
void add_amdgpu_matrices(Prelude& p);  // as each of AMD's generations has them
void add_cpu_matrices(Prelude& p);     // of a thread alone
// As CDialect::attributes where there are workgroups.
std::string workgroup_attributes(const kernel::LinearKernel& k, const Target& t);

}  // namespace tuff::render
