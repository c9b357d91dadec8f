#include "emu/memory/address_space.h"

#include <utility>

namespace tuff::emu {

std::shared_ptr<const Mapping> AddressSpace::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return nullptr;
  const auto& mapping = std::prev(after)->second;
  return address < mapping->end() ? mapping : nullptr;
}

void AddressSpace::map(Mapping mapping) {
  std::lock_guard lock(mutex_);
  mapping.serial = next_serial_++;
  const uint64_t address = mapping.address;
  mappings_[address] = std::make_shared<const Mapping>(std::move(mapping));
  ++generation_;
}

void AddressSpace::unmap(uint64_t address) {
  std::lock_guard lock(mutex_);
  generation_ += mappings_.erase(address);
}

bool AddressSpace::overlaps(uint64_t address, uint64_t size_bytes) const {
  std::lock_guard lock(mutex_);
  auto after = mappings_.upper_bound(address);
  if (after != mappings_.begin() && std::prev(after)->second->end() > address) return true;
  return after != mappings_.end() && after->first - address < size_bytes;
}

uint64_t AddressSpace::generation() const {
  std::lock_guard lock(mutex_);
  return generation_;
}

}  // namespace tuff::emu
