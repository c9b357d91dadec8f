// Firmware files written from the layouts that devices/nv/pci/firmware.h cites, whose contents
// count up: for emulated GPUs, tests, and as seeds of a fuzzer.
#pragma once

#include <string>
#include <utility>

#include "emu/nv/pci/sample_vbios.h"

namespace tuff::emu::nv::samples {

inline void put_container(Rom& file, size_t header, size_t data, size_t data_bytes) {
  put32(file, 0, 0x10de);
  put32(file, 4, 1);
  put32(file, 12, header);
  put32(file, 16, data);
  put32(file, 20, data_bytes);
  for (size_t n = 0; n < data_bytes; ++n) put(file, data + n, n & 0xff, 1);
  put32(file, 8, (file.size() + 255) / 256 * 256);
}

inline constexpr uint32_t kBooterBytes = 1024, kBooterData = 512, kBooterSignature = 528,
                          kBooterCode = 256, kBooterCodeBytes = 256;

// Signatures of 32 bytes, each of one value. Another program has some bits of each byte flipped.
inline Rom sample_booter(uint32_t signatures = 3, uint8_t flipped = 0) {
  Rom file;
  const uint32_t signature_bytes = 32 * signatures, numbers = 60 + signature_bytes;
  const uint32_t header[] = {60, signature_bytes, numbers, numbers + 4, numbers + 8, 12,
                             numbers + 20, numbers + 24, 36};
  for (size_t i = 0; i < std::size(header); ++i) put32(file, 24 + 4 * i, header[i]);
  for (uint32_t n = 0; n < signature_bytes; ++n) put(file, 60 + n, 0xb0 + n / 32, 1);
  const uint32_t rest[] = {kBooterSignature, 0, 2, 1, 3, signatures,  // what the header points to
                           0, 256, kBooterData, 512, 1, kBooterCode, kBooterCodeBytes, 0, 0};
  for (size_t i = 0; i < std::size(rest); ++i) put32(file, numbers + 4 * i, rest[i]);
  put_container(file, 24, numbers + 60, kBooterBytes);
  for (size_t n = 0; n < kBooterBytes; ++n) file[numbers + 60 + n] ^= flipped;
  return file;
}

inline constexpr uint32_t kBootloaderBytes = 0x400;
inline Rom sample_bootloader() {
  Rom file;
  put32(file, 24 + 4 * 7, 42);
  put32(file, 24 + 4 * 8, 0x300);
  put32(file, 24 + 4 * 9, 0x100);
  put32(file, 24 + 4 * 10, 0x200);
  put32(file, 24 + 4 * 11, 0x100);
  put32(file, 24 + 4 * 12, 0);
  put32(file, 24 + 4 * 13, 0x200);
  put_container(file, 24, 24 + 84, kBootloaderBytes);
  return file;
}

using NamedBytes = std::vector<std::pair<std::string, std::string>>;
// An ELF file of 32 or 64 bits with these sections.
inline Rom sample_elf(const NamedBytes& sections, uint32_t bits = 64) {
  const bool wide = bits == 64;
  Rom file(wide ? 64 : 52);
  put32(file, 0, 0x464c457f);
  put(file, 4, wide ? 0x010102 : 0x010101, 3);
  std::string names(1, '\0');
  struct Row {
    uint32_t name, type;
    uint64_t offset, size;
  };
  std::vector<Row> rows = {{0, 0, 0, 0}};
  const auto add = [&](uint32_t name, uint32_t type, const std::string& bytes) {
    rows.push_back({name, type, file.size(), bytes.size()});
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  for (const auto& [name, bytes] : sections) {
    add(uint32_t(names.size()), 1, bytes);
    names += name + '\0';
  }
  const auto own = uint32_t(names.size());
  names += std::string(".shstrtab") + '\0';
  add(own, 3, names);
  const size_t sizes = wide ? 0x3a : 0x2e, row_bytes = wide ? 64 : 40, word = wide ? 8 : 4;
  put(file, wide ? 0x28 : 0x20, file.size(), word);
  put16(file, sizes, row_bytes);
  put16(file, sizes + 2, rows.size());
  put16(file, sizes + 4, rows.size() - 1);
  for (const Row& r : rows) {
    const size_t at = file.size();
    put32(file, at, r.name);
    put32(file, at + 4, r.type);
    put(file, at + 8 + 2 * word, r.offset, word);
    put(file, at + 8 + 3 * word, r.size, word);
    file.resize(at + row_bytes);
  }
  return file;
}

inline Rom sample_gsp(const std::string& version = "570.144", size_t image_bytes = 600) {
  return sample_elf({{".fwimage", std::string(image_bytes, 'g')},
                     {".fwversion", version + std::string(1, '\0')},
                     {".fwsignature_ga10x", std::string(64, 's')},
                     {".fwsignature_ad10x", std::string(64, 't')},
                     {".fwsignature_gh100", std::string(64, 'u')},
                     {".fwsignature_gb20x", std::string(64, 'v')}});
}

// As Blackwell's, which has the smaller key.
inline Rom sample_fmc() {
  return sample_elf({{"image", std::string(500, 'i')},
                     {"hash", std::string(48, 'h')},
                     {"publickey", std::string(97, 'k')},
                     {"signature", std::string(96, 's')}},
                    32);
}

}  // namespace tuff::emu::nv::samples
