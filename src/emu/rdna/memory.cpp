#include "emu/rdna/memory.h"

#include "base/check.h"

namespace tuff::emu::rdna {

void RangeMemory::map(uint64_t address, std::span<uint8_t> bytes, bool writable) {
  const auto next = ranges_.lower_bound(address);
  const bool before = next != ranges_.begin() &&
                      std::prev(next)->first + std::prev(next)->second.bytes.size() > address;
  if (before || (next != ranges_.end() && next->first < address + bytes.size())) {
    fail<InvalidArgument>("emu: {} bytes at {:#x} overlap what is mapped there", bytes.size(),
                          address);
  }
  ranges_[address] = {bytes, writable};
}

Memory::Range RangeMemory::find(uint64_t address, bool write) {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return {};
  --found;
  const auto& [begin, mapping] = *found;
  if (address - begin >= mapping.bytes.size() || (write && !mapping.writable)) return {};
  return {begin, begin + mapping.bytes.size(), mapping.bytes.data()};
}

}  // namespace tuff::emu::rdna
