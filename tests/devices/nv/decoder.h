// Reads NVIDIA's command stream back: pushbuffer methods and QMDs, written from NVIDIA's class
// headers and not from the encoder. Refuses unknown methods, wrong counts and bits that no field of
// this driver uses. Sources: open-gpu-doc clc76f.h, clcbc0.h, clc8b5.h, clc7c0qmd.h, clcbc0qmd.h,
// clcec0qmd.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuff::devices::nv {

struct BadStream : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One increasing run of methods of a subchannel.
struct MethodRun {
  uint32_t subchannel = 0, first = 0;
  std::vector<uint32_t> data;
  std::string text() const;
};
std::vector<MethodRun> decode_methods(std::span<const uint32_t> dwords);

// The fields that are not 0, by NVIDIA's names.
using QmdFields = std::map<std::string, uint64_t>;
// Of version 3 (64 dwords), 4 or 5 (96 dwords).
QmdFields decode_qmd(int version, std::span<const uint32_t> dwords);

}  // namespace tuff::devices::nv
