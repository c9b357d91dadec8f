// A set of bytes of a large address space, as bits of pages. Called by profile/launch_counts.cpp for what a
// dispatch has read and written.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace tuff::emu {

class ByteSet {
 public:
  // How many of the bytes are new, apart from those that `without` has.
  uint64_t add(uint64_t address, uint32_t bytes, const ByteSet* without = nullptr);

 private:
  static constexpr uint32_t kPageBytes = 4096;
  using Page = std::bitset<kPageBytes>;
  Page& page(uint64_t number);
  const Page* find(uint64_t number) const;

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace tuff::emu
