// A disassembler of AMD's command packets, written from their published formats and not from the
// encoder: it shares no table with it. Refuses unknown packets, wrong counts and reserved bits.
// Sources: Linux amdgpu nvd.h, soc15d.h and *_sdma_pkt_open.h; AMD PAL's MEC packet headers; HSA
// runtime specification 1.2, 2.9 (AQL).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuff::devices::amd {

// What differs between generations, by LLVM's name of one.
struct Dialect {
  int gfx = 11;  // 9: gfx942
  static Dialect of(const std::string& name);
  uint32_t rsrc3() const { return gfx == 9 ? 0x22d : 0x228; }
  int copy_count_bits() const { return gfx == 9 ? 22 : 30; }
};

struct BadPacket : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Packet {
  uint32_t at = 0, dwords = 0;
  std::string name;
  std::map<std::string, uint64_t> fields;
  std::vector<uint32_t> values;     // SET_SH_REG
  std::vector<std::string> caches;  // ACQUIRE_MEM, RELEASE_MEM, GCR
  std::vector<Packet> body;         // PRED_EXEC
  uint64_t operator[](const std::string& field) const;
  std::string text() const;
};

std::vector<Packet> disassemble_pm4(std::span<const uint32_t> dwords, const Dialect& dialect);
std::vector<Packet> disassemble_sdma(std::span<const uint32_t> dwords, const Dialect& dialect);
std::vector<Packet> disassemble_aql(std::span<const uint32_t> dwords);
std::string to_text(const std::vector<Packet>& packets);

}  // namespace tuff::devices::amd
