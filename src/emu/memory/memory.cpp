#include "emu/memory/memory.h"

#include "base/check.h"

namespace tuff::emu {

void RangeMemory::map(uint64_t address, std::span<uint8_t> bytes, bool writable) {
  const auto next = ranges_.lower_bound(address);
  const bool before = next != ranges_.begin() &&
                      std::prev(next)->first + std::prev(next)->second.bytes.size() > address;
  if (before || (next != ranges_.end() && next->first - address < bytes.size())) {
    fail<InvalidArgument>("emu: {} bytes at {:#x} overlap what is mapped there", bytes.size(),
                          address);
  }
  ranges_[address] = {address, bytes, writable};
}

void RangeMemory::unmap(uint64_t address) {
  ranges_.erase(address);
  last_ = {};
}

const RangeMemory::Mapping* RangeMemory::find(uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  return after == ranges_.begin() ? nullptr : &std::prev(after)->second;
}

uint8_t* RangeMemory::reach(const Access& access, Defect&) {
  return RangeMemory::reach_run(access);
}

uint8_t* RangeMemory::reach_run(const Access& access) {
  const auto holds = [&](const Mapping& mapping) {
    const uint64_t at = access.address - mapping.begin;
    const bool writes = access.kind == AccessKind::Store || access.kind == AccessKind::Atomic;
    return at < mapping.bytes.size() && mapping.bytes.size() - at >= access.bytes &&
           (mapping.writable || !writes);
  };
  if (!holds(last_)) {
    const Mapping* found = find(access.address);
    if (!found || !holds(*found)) return nullptr;
    last_ = *found;
  }
  return last_.bytes.data() + (access.address - last_.begin);
}

const uint8_t* RangeMemory::peek(uint64_t address, uint32_t bytes) {
  const Mapping* found = find(address);
  if (!found || found->bytes.size() < bytes) return nullptr;
  const uint64_t at = address - found->begin;
  return at <= found->bytes.size() - bytes ? found->bytes.data() + at : nullptr;
}

}  // namespace tuff::emu
