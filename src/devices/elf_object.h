// ElfObject: loads an ELF64 x86-64 relocatable object (what a C compiler writes with -c) into this
// process. Called by cpu_program for Binaries of format Object. Undefined symbols are looked up
// in what the process has loaded (memcpy, expf ...). Damaged objects throw CompileError; every
// offset is checked before it is followed. Never runs anything. Source: System V ABI, AMD64
// supplement 1.0, section 4.4 (relocation); gABI chapter 4 (sections).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/os.h"

namespace tuff::devices {

class ElfObject {
 public:
  explicit ElfObject(std::span<const uint8_t> bytes);
  ~ElfObject();
  ElfObject(const ElfObject&) = delete;
  // Entry point of a function defined in the object; throws CompileError naming what is missing.
  const void* function(const std::string& symbol) const;

 private:
  struct Loader;
  std::unique_ptr<os::ExecutableMemory>
      code_;                   // text, constants, GOT and PLT; read-only once sealed
  std::byte* data_ = nullptr;  // .data and .bss
  size_t data_bytes_ = 0;
  std::unordered_map<std::string, const void*> functions_;
};

}  // namespace tuff::devices
