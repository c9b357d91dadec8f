// A discovery table of a Navi 31, written from Linux's discovery.h: for emulated GPUs, tests, and as
// seeds of a fuzzer. Where blocks' registers begin is like what Linux's headers *_ip_offset.h have
// of older GPUs: only a GPU says it of itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace tuff::emu::amd::samples {

using Bytes = std::vector<uint8_t>;

inline void put(Bytes& to, size_t at, uint64_t value, size_t size_bytes) {
  if (to.size() < at + size_bytes) to.resize(at + size_bytes);
  std::memcpy(to.data() + at, &value, size_bytes);
}
inline void put16(Bytes& to, size_t at, uint64_t value) { put(to, at, value, 2); }
inline void put32(Bytes& to, size_t at, uint64_t value) { put(to, at, value, 4); }
inline uint16_t byte_sum(const Bytes& of, size_t at, size_t size_bytes) {
  uint16_t sum = 0;
  for (size_t i = at; i < at + size_bytes; ++i) sum = uint16_t(sum + of[i]);
  return sum;
}

struct SampleBlock {
  uint16_t hw_id;
  uint8_t instance, major, minor, revision;
  std::vector<uint64_t> bases;
};
inline std::vector<SampleBlock> navi31_blocks() {
  return {
      {11, 0, 11, 0, 0, {0x1260, 0xa000, 0x1c000, 0x2402c00}},                 // GC
      {34, 0, 3, 0, 0, {0x1a000, 0x2408800}},                                  // MMHUB
      {40, 0, 6, 0, 0, {0x10a0, 0x240a000}},                                   // OSSSYS
      {41, 0, 6, 0, 0, {0xf20, 0x240a400}},                                    // HDP
      {42, 0, 6, 0, 0, {0x1260, 0xa000, 0x1c000, 0x2402c00}},                  // SDMA0
      {43, 0, 6, 0, 0, {0x1260, 0xa000, 0x1c000, 0x2402c00}},                  // SDMA1
      {108, 0, 4, 3, 0, {0x0, 0x14, 0xd20, 0x10400, 0x241b000, 0x4040000}},    // NBIO
      {255, 0, 13, 0, 0, {0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00}},  // MP0
      {1, 0, 13, 0, 0, {0x16000, 0x3c0000, 0xd80000, 0x244ac00}},              // MP1
      {150, 0, 8, 10, 0, {0x14000}},                                           // UMC
      {4, 0, 13, 0, 6, {0x16800, 0x16a00}},                                    // SMUIO
  };
}

struct SampleTable {
  uint16_t version = 4;
  bool wide = false;  // bases of 64 bits
  std::vector<SampleBlock> blocks = navi31_blocks();
  std::vector<std::pair<uint16_t, uint8_t>> harvested;  // blocks and instances
};
inline constexpr size_t kSampleBlocks = 60, kSampleDie = kSampleBlocks + 80;

inline Bytes sample_discovery(const SampleTable& table = {}) {
  Bytes t;
  put32(t, 0, 0x28211407);
  put16(t, 4, 1);
  // The list of blocks, of one die.
  put32(t, kSampleBlocks, 0x53445049);
  put16(t, kSampleBlocks + 4, table.version);
  put16(t, kSampleBlocks + 12, 1);
  put16(t, kSampleBlocks + 16, kSampleDie);
  put(t, kSampleBlocks + 78, table.wide, 2);
  put16(t, kSampleDie, 0);
  put16(t, kSampleDie + 2, table.blocks.size());
  size_t at = kSampleDie + 4;
  for (const SampleBlock& b : table.blocks) {
    put16(t, at, b.hw_id);
    const uint64_t rest[] = {b.instance, b.bases.size(), b.major, b.minor, b.revision, 0};
    for (size_t i = 0; i < std::size(rest); ++i) put(t, at + 2 + i, rest[i], 1);
    at += 8;
    for (const uint64_t base : b.bases) {
      put(t, at, base, table.wide ? 8 : 4);
      at += table.wide ? 8 : 4;
    }
  }
  const auto list = [&](size_t number, size_t begin, size_t end) {
    put16(t, 12 + 8 * number, begin);
    put16(t, 14 + 8 * number, byte_sum(t, begin, end - begin));
    put16(t, 16 + 8 * number, end - begin);
  };
  put16(t, kSampleBlocks + 6, at - kSampleBlocks);
  list(0, kSampleBlocks, at);
  // The graphics block: 6 engines of 2 arrays of 4 workgroup processors.
  const size_t gc = at;
  const uint32_t words[] = {0x4347, 1, 88,   6,  4,  0,  16, 6, 1536, 32, 0,
                            0,      0, 1024, 32, 16, 32, 64, 1, 2,    4,  0};
  for (size_t i = 0; i < std::size(words); ++i) put32(t, gc + 4 * i, words[i]);
  list(1, gc, gc + 88);
  const size_t off = gc + 88;
  put32(t, off, 0x56524148);
  put32(t, off + 4, 0);
  for (size_t i = 0; i < 32; ++i) {
    const bool is_one = i < table.harvested.size();
    put16(t, off + 8 + 4 * i, is_one ? table.harvested[i].first : 0);
    put16(t, off + 10 + 4 * i, is_one ? table.harvested[i].second : 0);
  }
  list(2, off, off + 136);
  put16(t, 10, t.size());
  put16(t, 8, byte_sum(t, 10, t.size() - 10));
  return t;
}

}  // namespace tuff::emu::amd::samples
