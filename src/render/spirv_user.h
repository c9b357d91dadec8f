// Modules that users wrote, by glslang or by whatever made their SPIR-V: what they say of
// themselves, and whether it is what was declared of the kernel. Called by user_kernel.cpp, with
// spirv_arguments.h, which gives them tuff's arguments. Knows no compiler and no device.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"

namespace tuff::render {

// What is declared of a kernel's argument.
struct UserArgument {
  std::string name;  // "output 0", "input 1"
  bool written = false;
  uint64_t size_bytes = 0;
};

struct UserInstruction {
  uint32_t op = 0;
  std::span<const uint32_t> words;  // the first of them says how many there are
  // 0, which is no id, where a damaged module ends early.
  uint32_t word(size_t n) const { return n < words.size() ? words[n] : 0; }
};
using UserInstructions = std::vector<UserInstruction>;

// A storage buffer of a module, which one argument is bound to.
struct UserBuffer {
  uint32_t pointer_type = 0, block = 0;  // its type, and that of what it points to
  uint32_t binding = 0;
  bool is_volatile = false;  // other invocations may change what is read
};

// A module that has been read and found to be what was declared. Words are the caller's.
struct UserModule {
  UserInstructions all;
  uint32_t version = 0, bound = 0;  // of the header
  std::string entry;
  std::array<uint32_t, 3> local{1, 1, 1};
  std::map<uint32_t, UserBuffer> buffers;              // by the variable's id
  std::map<uint32_t, uint32_t> buffer_of;              // of a pointer into one: the variable's id
  std::map<uint32_t, UserInstruction> globals;         // types, constants and variables, by id
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets;  // of (struct, member), in bytes
  std::map<uint32_t, uint32_t> strides;                // of arrays, in bytes
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> matrix_strides;
  uint32_t constant(uint32_t id) const;  // of 32 bits; 0 where it is none
};

// Throws CompileError naming the kernel and what does not fit: no such entry point, resources that
// are no storage buffers of set 0, bindings other than one for each argument, stores into what was
// declared to be read, nothing stored where something was declared to be; Unsupported for
// capabilities that the Target does not say it has; std::out_of_range for a module that names what
// it has not. That it is valid SPIR-V otherwise is the caller's to know (spirv-val).
UserModule read_user_module(const std::string& kernel, std::span<const uint32_t> words,
                            const std::string& entry, std::span<const UserArgument> arguments,
                            const Target& target);

// Where an instruction has pointers among its words: those that it reads or writes through, and
// the one that it makes a pointer of. 0: none.
struct PointerUse {
  uint32_t read = 0, written = 0, base = 0;
};
PointerUse pointers_of(uint32_t op);

}  // namespace tuff::render
