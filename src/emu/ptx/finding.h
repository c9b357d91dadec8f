// What the interpreter reports of a kernel: one record per kind and instruction, with the thread
// that came there first. Written by the interpreter, handed on by launch.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff::emu::ptx {

enum class FindingKind : uint8_t {
  OutOfBounds,    // no memory there, or none that can be written
  Misaligned,     // an address that is no multiple of the access's size
  Race,           // two threads, one of them writing, nothing between
  Barrier,        // not all threads of a block come to it, or not by one instruction
  Uninitialized,  // a value that nobody wrote reaches an address, memory or control flow
  SyncMask,       // names lanes that are not there, or not the lane that executes it
  Trap,
  Hang,      // the instruction budget is spent
  Undefined  // what PTX gives no meaning, and no other kind has
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string instruction;
  uint32_t line = 0;  // of the text
  uint32_t block = 0, thread = 0;
  uint64_t address = 0;  // where the kind has one
  std::string detail;
  uint64_t times = 1;
};

const char* name(FindingKind kind);
std::string to_text(const Finding& finding);

}  // namespace tuff::emu::ptx
