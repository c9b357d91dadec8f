// Tlsf: two-level segregated fit over a range of bytes that the host cannot write into.
// Used by Allocator, one per shared block. All bookkeeping lies beside the range, not inside it, so
// it serves device memory. Never knows what the range is. Allocation and release are O(1). Source:
// Masmano et al., "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tuff::hcq {

class Tlsf {
 public:
  static constexpr size_t kGranuleBytes = 256;  // every offset and size is a multiple of it
  explicit Tlsf(size_t size_bytes);
  // Offset of a free range, or nullopt. `alignment` is a power of two.
  std::optional<size_t> allocate(size_t size_bytes, size_t alignment);
  size_t free(size_t offset);  // gives the range back, joined with its neighbours; returns its size
  size_t used_bytes() const { return size_t{used_granules_} * kGranuleBytes; }
  size_t range_bytes(size_t offset) const;  // size of a range handed out

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kSecondLevels = 16, kFirstLevels = 32;
  struct Node {
    uint32_t start = 0, length = 0;           // granules
    uint32_t before = kNone, after = kNone;   // neighbours in memory
    uint32_t previous = kNone, next = kNone;  // free list
    bool free = false;
  };
  struct Class {
    uint32_t first, second;
  };
  static Class class_of(uint32_t length);
  uint32_t find(uint32_t length);
  uint32_t new_node();
  void insert(uint32_t node);
  void remove(uint32_t node);
  uint32_t split(uint32_t node, uint32_t length);  // keeps `length` in node, returns the rest
  void absorb_next(uint32_t node);

  std::vector<Node> nodes_;
  std::vector<uint32_t> spare_nodes_;
  std::unordered_map<uint32_t, uint32_t> live_;  // start -> node, of ranges handed out
  std::array<std::array<uint32_t, kSecondLevels>, kFirstLevels> heads_;
  std::array<uint16_t, kFirstLevels> second_bits_{};
  uint32_t first_bits_ = 0;
  uint32_t used_granules_ = 0;
};

}  // namespace tuff::hcq
