// An AMDGPU code object, linked (ET_DYN) or not (ET_REL): its image placed at an address, its
// kernels. Called by tests and `tuff emu`. Damaged files throw CompileError; every offset is
// checked. Source: gABI chapter 4; LLVM, "User Guide for AMDGPU Backend", Relocation Records.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "emu/rdna/kernel.h"

namespace tuff::emu::rdna {

class CodeObject {
 public:
  CodeObject(std::span<const uint8_t> file, uint64_t address);
  // The kernel of a name; throws InvalidArgument naming those that are there.
  Kernel kernel(const std::string& name) const;
  std::vector<std::string> kernels() const;
  std::span<uint8_t> image() { return image_; }  // to be mapped at the address
  // The instructions.
  std::span<const uint8_t> code() const {
    return std::span(image_).subspan(code_.offset, code_.bytes);
  }
  uint64_t address() const { return address_; }

 private:
  struct Reader;
  uint64_t address_;
  std::vector<uint8_t> image_;
  std::map<std::string, uint64_t> symbols_;  // offsets in the image
  struct {
    uint64_t offset = 0, bytes = 0;
  } code_;  // in the image
};

}  // namespace tuff::emu::rdna
