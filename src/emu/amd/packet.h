// One packet as a command processor has fetched it, and how its fields are checked: whatever a
// packet has that this GPU does not is an error, so that nothing passes here by being ignored.
// Used by pm4.cpp and the queues. Constants come from the driver's tables, meanings do not.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuff::emu::amd {

// Ends the queue.
struct BadPacket : std::runtime_error {
  explicit BadPacket(const std::string& what, uint64_t where = 0)
      : std::runtime_error(what), address(where) {}
  uint64_t address;
};
// An engine's access to what is not mapped; Caches::fault() says where.
struct EngineFault {
  std::string what;
};

template <class... Args>
[[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) {
  throw BadPacket(fmt::format(text, std::forward<Args>(args)...));
}

namespace pm4 {
#define AMD_PM4(name, opcode) inline constexpr uint32_t name = opcode;
#include "devices/amd/encode/packets.def"
}  // namespace pm4
namespace sdma {
#define AMD_SDMA(name, op) inline constexpr uint32_t name = op;
#include "devices/amd/encode/packets.def"
}  // namespace sdma
namespace aql {
#define AMD_AQL(name, type) inline constexpr uint32_t name = type;
#include "devices/amd/encode/packets.def"
inline constexpr uint32_t kPacketBytes = 64;
}  // namespace aql
namespace reg {
#define AMD_SH_REGISTER(name, offset) inline constexpr uint32_t name = offset;
#define AMD_REGISTER(name, address) inline constexpr uint32_t name = address;
#include "devices/amd/encode/registers.def"
// On gfx10 and later. Source: Linux include/asic_reg/gc/gc_11_0_0_offset.h, from 0x2c00.
inline constexpr uint32_t COMPUTE_PGM_RSRC3 = 0x228;
}  // namespace reg

struct Packet {
  const char* name = "";
  uint64_t address = 0;  // where it lies
  std::vector<uint32_t> dwords;

  uint32_t operator[](size_t i) const { return dwords[i]; }
  // Dword i, in which only the bits of `known` may be set.
  uint32_t only(size_t i, uint32_t known) const {
    if (dwords[i] & ~known) {
      bad("{}, dword {}: reserved bits {:#x} are set", name, i, dwords[i] & ~known);
    }
    return dwords[i];
  }
  void is(size_t i, uint32_t expected, const char* what) const {
    if (dwords[i] != expected) bad("{}: {} is {:#x}, not {:#x}", name, what, dwords[i], expected);
  }
  void count(size_t expected) const {
    if (dwords.size() != expected) {
      bad("{} has {} dwords, not {}", name, expected, dwords.size());
    }
  }
  // 48 bits in dwords i and i + 1.
  uint64_t target(size_t i, uint64_t alignment) const {
    const uint64_t a = dwords[i] | uint64_t(dwords[i + 1]) << 32;
    if (a >> 48) bad("{}: address {:#x} is not canonical", name, a);
    if (a % alignment) bad("{}: address {:#x} is not a multiple of {}", name, a, alignment);
    return a;
  }
};

}  // namespace tuff::emu::amd
