// Firmware files of a Navi 31, written from the layouts of Linux's amdgpu_ucode.h, whose contents
// count up from a number of their own: for emulated GPUs, tests, and as seeds of a fuzzer.
#pragma once

#include <string>
#include <utility>

#include "emu/amd/pci/sample_discovery.h"

namespace tuff::emu::amd::samples {

inline constexpr size_t kSampleCode = 256;  // where what is loaded begins

inline void count_up(Bytes& to, size_t at, size_t size_bytes, uint8_t first) {
  for (size_t i = 0; i < size_bytes; ++i) put(to, at + i, (first + i) & 0xff, 1);
}
inline Bytes sample_file(uint16_t major, uint16_t minor, size_t code_bytes) {
  Bytes f;
  put32(f, 4, kSampleCode);
  put16(f, 8, major);
  put16(f, 10, minor);
  put32(f, 16, 7);
  put32(f, 20, code_bytes);
  put32(f, 24, kSampleCode);
  return f;
}
inline Bytes finished(Bytes f) {
  put32(f, 0, f.size());
  return f;
}

// Components of 64 bytes by their numbers, which they begin with.
inline Bytes sample_sos(const std::vector<uint32_t>& types = {3, 5, 2, 7, 8, 9, 10, 4, 1, 6}) {
  Bytes f = sample_file(2, 0, 64 * types.size());
  put32(f, 32, types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    put32(f, 36 + 16 * i, types[i]);
    put32(f, 44 + 16 * i, 64 * i);
    put32(f, 48 + 16 * i, 64);
    count_up(f, kSampleCode + 64 * i, 64, uint8_t(types[i]));
  }
  return finished(f);
}
inline Bytes sample_smu() {
  Bytes f = sample_file(1, 0, 128);
  count_up(f, kSampleCode, 128, 18);
  return finished(f);
}
inline Bytes sample_sdma() {
  Bytes f = sample_file(2, 0, 192);
  put32(f, 36, 64);
  put32(f, 48, kSampleCode + 64);
  put32(f, 52, 128);
  count_up(f, kSampleCode, 64, 71);
  count_up(f, kSampleCode + 64, 128, 72);
  return finished(f);
}
inline constexpr uint64_t kSampleMecStart = 0x1'0000'3000;
inline Bytes sample_mec() {
  Bytes f = sample_file(2, 0, 192);
  put32(f, 36, 128);
  put32(f, 44, 64);
  put32(f, 48, kSampleCode + 128);
  put32(f, 52, uint32_t(kSampleMecStart));
  put32(f, 56, kSampleMecStart >> 32);
  count_up(f, kSampleCode, 128, 89);
  count_up(f, kSampleCode + 128, 64, 94);
  return finished(f);
}
inline Bytes sample_imu() {
  Bytes f = sample_file(1, 0, 160);
  put32(f, 32, 96);
  put32(f, 40, 64);
  count_up(f, kSampleCode, 96, 68);
  count_up(f, kSampleCode + 96, 64, 69);
  return finished(f);
}
// Of versions 2.0 to 2.3; a list of version 2.1 is empty where it is not asked for.
inline Bytes sample_rlc(uint16_t minor = 3, bool lists = false) {
  Bytes f = sample_file(2, minor, 64);
  count_up(f, kSampleCode, 64, 8);
  size_t at = kSampleCode + 64;
  const auto part = [&](size_t size_at, uint8_t type, bool there) {
    put32(f, size_at, there ? 32 : 0);
    put32(f, size_at + 4, at);
    if (there) count_up(f, at, 32, type);
    at += there ? 32 : 0;
  };
  if (minor >= 1)
    for (const auto& [place, type] : {std::pair(116, 22), {132, 20}, {148, 21}})
      part(size_t(place), uint8_t(type), lists);
  if (minor >= 2)
    for (const auto& [place, type] : {std::pair(156, 26), {164, 48}})
      part(size_t(place), uint8_t(type), true);
  if (minor >= 3)
    for (const auto& [place, type] : {std::pair(180, 25), {196, 7}})
      part(size_t(place), uint8_t(type), true);
  return finished(f);
}

}  // namespace tuff::emu::amd::samples
