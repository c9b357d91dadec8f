// Reads NVIDIA's command stream back: pushbuffer methods and QMDs, written from NVIDIA's class
// headers and not from the encoder. Refuses unknown methods, wrong counts and bits that no field of
// this driver uses. Sources: open-gpu-doc clc76f.h, clcbc0.h, clc8b5.h, clc7c0qmd.h, clcbc0qmd.h.
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
QmdFields decode_qmd_v03(std::span<const uint32_t> dwords);  // 64 dwords
QmdFields decode_qmd_v04(std::span<const uint32_t> dwords);  // 96 dwords

}  // namespace tuff::devices::nv
