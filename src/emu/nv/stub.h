// Stub: what the emulated GPU's object files have where NVIDIA's have a kernel's instructions. It
// names the text of PTX that is interpreted in their place, and says what of the machine the kernel
// takes, which a launch is held against. Made by assembler.cpp, read by compute_engine.cpp where a
// launch's program address points. No instruction of NVIDIA's machines is read, made or executed
// anywhere.
#pragma once

#include <cstdint>

namespace tuff::emu::nv {

inline constexpr char kStubMagic[16] = "tuff PTX kernel";

struct Stub {
  char magic[16];
  uint64_t text_address;  // in GPU memory: put in by who loads the file
  uint64_t text_bytes, text_hash;
  uint32_t registers, barriers, shared_bytes, local_bytes;
  uint32_t sm, name_bytes;
  char name[64];  // of the kernel
};
static_assert(sizeof(Stub) == 128);

inline uint64_t hash_of(const char* text, uint64_t bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < bytes; ++i) hash = (hash ^ uint8_t(text[i])) * 0x100000001b3;
  return hash;
}

}  // namespace tuff::emu::nv
