// LoadedCode: which kernel begins at an address, from what a driver tells debuggers: a list of
// loaded code objects (r_debug, link_map; glibc's link.h) whose address it gave to RUNTIME_ENABLE.
// Everything in it is the process's memory and may be damaged or half changed: nothing is followed
// unchecked. Called by engines.cpp while a GPU is locked: a leaf among locks. Source of the names
// "memory://PID#offset=0xADDR&size=SIZE": LLVM, AMDGPUUsage, "Code Object URIs".
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/kernel/user_memory.h"

namespace tuff::emu::amd {

// A place in this process, from such a name; nullopt if it is none of this process.
struct CodeRange {
  uint64_t address = 0, size_bytes = 0;
};
std::optional<CodeRange> parse_code_uri(const std::string& uri, uint64_t pid);

// Names of kernels by the offset of their first instruction in the image. Empty where the bytes
// are no code object, or damaged.
std::map<uint64_t, std::string> kernel_offsets(std::span<const uint8_t> object);

class LoadedCode {
 public:
  explicit LoadedCode(UserMemory& memory) : memory_(memory) {}
  void set_list(uint64_t r_debug);  // 0: there is none
  // Empty: not known.
  std::string kernel_at(uint64_t entry);

 private:
  std::string search(uint64_t entry);
  std::string search_object(const CodeRange& range, uint64_t offset);

  UserMemory& memory_;
  std::mutex mutex_;
  uint64_t r_debug_ = 0;
};

}  // namespace tuff::emu::amd
