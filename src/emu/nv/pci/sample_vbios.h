// A VBIOS written from the layouts that devices/nv/pci/vbios.h cites, with a program FWSEC whose
// bytes count up: for emulated GPUs, tests, and as seeds of a fuzzer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tuff::emu::nv::samples {

using Rom = std::vector<uint8_t>;

inline void put(Rom& rom, size_t at, uint64_t value, size_t size_bytes) {
  if (rom.size() < at + size_bytes) rom.resize(at + size_bytes);
  std::memcpy(rom.data() + at, &value, size_bytes);
}
inline void put16(Rom& rom, size_t at, uint64_t value) { put(rom, at, value, 2); }
inline void put32(Rom& rom, size_t at, uint64_t value) { put(rom, at, value, 4); }

struct VbiosForm {
  uint32_t descriptor_version = 3;
  uint32_t before = 0;           // version of the values for registers before the images; 0: none
  bool image_between = true;     // UEFI's, between base and extension
  bool counted_anew = false;     // the extension's data structure has NVIDIA's extension
  uint32_t signatures = 2;
  uint16_t signature_versions = 0x12;  // 1 and 4
  uint8_t application = 0x85;
  uint32_t code_bytes = 256, data_bytes = 768;
  uint32_t data_physical = 0x40;
  uint32_t command_bytes = 48;   // room for arguments
};

// Where FWSEC's parts lie in its data.
inline constexpr uint32_t kSampleInterfaces = 16, kSampleMapper = 64, kSampleArguments = 128,
                          kSampleSignature = 256;

inline void put_image_header(Rom& rom, size_t at, uint8_t kind, size_t size_bytes, bool last,
                             bool counted_anew = false) {
  const size_t data = at + 0x40;
  put16(rom, at, 0xaa55);
  put16(rom, at + 0x18, data - at);
  put32(rom, data, 0x52494350);  // PCIR
  put16(rom, data + 0xa, 0x18);  // its bytes
  put16(rom, data + 0x10, counted_anew ? 1 : size_bytes / 512);
  put(rom, data + 0x14, kind, 1);
  put(rom, data + 0x15, last != counted_anew ? 0x80 : 0, 1);
  if (counted_anew) {
    const size_t extension = (data + 0x18 + 15) / 16 * 16;
    put32(rom, extension, 0x4544504e);  // NPDE
    put16(rom, extension + 4, 0x101);
    put16(rom, extension + 6, 12);
    put16(rom, extension + 8, size_bytes / 512);
    put(rom, extension + 10, last ? 0x80 : 0, 1);
  }
  rom.resize(std::max(rom.size(), at + size_bytes));
}

// The table of tables, with the token of falcon programs behind another one.
inline void put_bit(Rom& rom, size_t image, uint32_t falcon_table) {
  const size_t at = image + 0x1b0;
  constexpr uint8_t header = 12, token = 6, tokens = 2;
  put16(rom, at, 0xb8ff);
  put32(rom, at + 2, 0x00544942);
  put16(rom, at + 6, 0x100);
  put(rom, at + 8, header, 1);
  put(rom, at + 9, token, 1);
  put(rom, at + 10, tokens, 1);
  uint8_t sum = 0;
  for (size_t i = 0; i < 11; ++i) sum = uint8_t(sum + rom[at + i]);
  put(rom, at + 11, uint8_t(-sum), 1);
  put(rom, at + header, 0x42, 1);
  const size_t second = at + header + token;
  put(rom, second, 0x70, 1);
  put(rom, second + 1, 2, 1);
  put16(rom, second + 2, 4);
  put16(rom, second + 4, at + 64 - image);
  put32(rom, at + 64, falcon_table);
}

// FWSEC at `at`: descriptor, signatures, code, data.
inline void put_fwsec(Rom& rom, size_t at, const VbiosForm& form) {
  const bool loader = form.descriptor_version == 2;
  const uint32_t fixed = loader ? 60 : 44;
  const uint32_t bytes = fixed + (loader ? 0 : 384 * form.signatures);
  put32(rom, at, bytes << 16 | form.descriptor_version << 8 | 1);
  const auto word = [&](size_t n, uint32_t value) { put32(rom, at + 4 * n, value); };
  word(1, form.code_bytes + form.data_bytes);
  if (loader) {
    word(3, 0x20);
    word(4, kSampleInterfaces);
    word(5, 0);
    word(6, form.code_bytes);
    word(7, 0x1000);
    word(8, 0x1040);
    word(9, 128);
    word(10, form.code_bytes);
    word(11, 0);
    word(12, form.data_bytes);
  } else {
    word(2, kSampleSignature);
    word(3, kSampleInterfaces);
    word(4, 0x100);
    word(5, form.code_bytes);
    word(6, 0x2000);
    word(7, form.data_physical);
    word(8, form.data_bytes);
    put16(rom, at + 36, 0x400);
    put(rom, at + 38, 9, 1);
    put(rom, at + 39, form.signatures, 1);
    put16(rom, at + 40, form.signature_versions);
    for (uint32_t i = 0; i < form.signatures; ++i)
      for (uint32_t n = 0; n < 384; ++n) put(rom, at + fixed + i * 384 + n, 0xa0 + i, 1);
  }
  const size_t code = at + bytes, data = code + form.code_bytes;
  for (size_t n = 0; n < form.code_bytes + form.data_bytes; ++n) put(rom, code + n, n & 0xff, 1);
  put32(rom, data + kSampleInterfaces, 0x02080401);  // two of 8 bytes behind 4
  put32(rom, data + kSampleInterfaces + 4, 1);
  put32(rom, data + kSampleInterfaces + 12, 4);
  put32(rom, data + kSampleInterfaces + 16, kSampleMapper);
  put32(rom, data + kSampleMapper + 8, kSampleArguments);
  put32(rom, data + kSampleMapper + 12, form.command_bytes);
}

inline Rom sample_vbios(const VbiosForm& form = {}) {
  Rom rom;
  size_t first = 0;
  if (form.before) {
    first = 1024;
    put32(rom, 0, 0x4947564e);  // NVGI
    put32(rom, 4, 64u << 16 | form.before << 8);
    put32(rom, 8, 128);
    put32(rom, 68, first);
    if (form.before == 3) {
      first = 4096 + 512;
      put32(rom, 128, 256);
      put32(rom, 4096 + 256, 0x44524652);  // RFRD
      put32(rom, 4096 + 256 + 8, first);
    }
  }
  constexpr size_t base_bytes = 1024, between_bytes = 512;
  put_image_header(rom, first, 0x00, base_bytes, false);
  // Offsets beyond the base image count on into the extension.
  constexpr uint32_t table = 0x80, fwsec = 0x100;
  put_bit(rom, first, base_bytes + table);
  size_t extension = first + base_bytes;
  if (form.image_between) {
    put_image_header(rom, extension, 0x03, between_bytes, false);
    extension += between_bytes;
  }
  put32(rom, extension + table, 0x02060601);  // of version 1: two of 6 bytes behind 6
  put16(rom, extension + table + 4, 0);
  put(rom, extension + table + 6, 0x01, 1);
  put(rom, extension + table + 12, form.application, 1);
  put32(rom, extension + table + 14, base_bytes + fwsec);
  put_fwsec(rom, extension + fwsec, form);
  const size_t whole = (rom.size() - extension + 511) / 512 * 512;
  put_image_header(rom, extension, 0xe0, whole, true, form.counted_anew);
  return rom;
}

}  // namespace tuff::emu::nv::samples
