#include "emu/amd/pci/hub_model.h"

#include <fmt/format.h>

#include <cstring>

namespace tuff::emu::amd {
namespace {

// In dwords from where a group of registers begins.
constexpr uint32_t kFaultControl = 8, kFaultStatus = 12, kFaultAddress = 13;
constexpr uint32_t kContextControl = 0, kSemaphore = 0x22, kRequest = 0x34, kAcknowledge = 0x46,
                   kRoot = 0x6b, kFirst = 0x8b, kLast = 0xab;
constexpr uint32_t kBase = 0, kTop = 1;
constexpr uint32_t kGroupWords = 0x100;
constexpr uint64_t kUnit = 1u << 24, kPage = 4096;
constexpr uint32_t kLevels = 0x1f << 19;  // INVALIDATE_L2_PTES, _PDE0..2, L1_PTES

}  // namespace

HubModel::HubModel(Block block, const DeviceMemory& memory, Told told)
    : block_(block),
      at_(block == Block::Gc ? Groups{0x15bc, 0x1688, 0x1678, 0x15a7}
                             : Groups{0x700, 0x740, 0x8ec, 0x8d7}),
      memory_(memory),
      told_(std::move(told)) {
  power_on();
}

void HubModel::power_on() {
  words_.clear();
  tlb_.clear();
  has_semaphore_ = false;
  word(at_.memory + kBase) = DeviceMemory::kBegin / kUnit;
  word(at_.memory + kTop) = uint32_t((DeviceMemory::kBegin + memory_.size_bytes()) / kUnit - 1);
  word(at_.default_page) = DeviceMemory::kEntryOffset / kUnit;
}

bool HubModel::has(uint64_t place) const {
  const uint64_t base = register_place(block_, 0, 0);
  if (place < base) return false;
  const uint64_t n = (place - base) / 4;
  const auto in = [&](uint32_t begin, uint32_t words) { return n >= begin && n < begin + words; };
  return in(at_.default_page, 3) || in(at_.l2, 0x20) || in(at_.context, kGroupWords) ||
         in(at_.memory, 8);
}

uint32_t HubModel::read(uint64_t place) {
  const uint32_t n = uint32_t((place - register_place(block_, 0, 0)) / 4);
  if (n == at_.context + kSemaphore) {
    const bool taken = !hung_ && !has_semaphore_;
    has_semaphore_ |= taken;
    return taken;
  }
  return word(n);
}

void HubModel::write(uint64_t place, uint32_t value) {
  const uint32_t n = uint32_t((place - register_place(block_, 0, 0)) / 4);
  word(n) = value;
  if (n == at_.context + kSemaphore && value == 0) has_semaphore_ = false;
  if (n == at_.l2 + kFaultControl && (value & 1)) {
    word(at_.l2 + kFaultStatus) = word(at_.l2 + kFaultAddress) = 0;
    word(at_.l2 + kFaultAddress + 1) = 0;
    word(n) = value & ~1u;
  }
  if (n != at_.context + kRequest || hung_) return;
  if (block_ == Block::Mmhub && !has_semaphore_)
    told_("MMHUB is told to forget by who has not its semaphore");
  if ((value & kLevels) != kLevels) told_("an invalidation that leaves some level of the tables");
  if (value & 1) tlb_.clear();
  ++invalidations_;
  word(at_.context + kAcknowledge) = value & 0xffff;
}

GpuPage HubModel::walk(uint64_t address) {
  const auto read_entry = [this](uint64_t at, uint64_t& entry) {
    const std::byte* const from = memory_.of_entry(at, sizeof entry);
    if (from != nullptr) std::memcpy(&entry, from, sizeof entry);
    return from != nullptr;
  };
  const uint64_t first = pair(at_.context + kFirst), last = pair(at_.context + kLast);
  if (!(word(at_.context + kContextControl) & 1) || address / kPage < first ||
      address / kPage > last) {
    GpuPage p;
    p.fault = "context 0 does not have the address";
    return p;
  }
  return walk_gpu_tables(read_entry, pair(at_.context + kRoot) & ~uint64_t{kPage - 1}, address);
}

std::optional<GpuPage> HubModel::translate(uint64_t address, bool is_write) {
  GpuPage now = walk(address);
  const auto kept = tlb_.find(address / kPage);
  if (kept != tlb_.end()) {
    const GpuPage& old = kept->second;
    const uint64_t physical = old.physical / kPage * kPage + address % kPage;
    if (!now.fault.empty() || now.physical != physical || now.writable != old.writable)
      told_(fmt::format("{:#x} is translated as its entry was before: no invalidation", address));
    now = old;
    now.physical = physical;
  }
  if (!now.fault.empty() || !(is_write ? now.writable : now.readable)) {
    keep_fault(address, is_write, now.fault.empty());
    return std::nullopt;
  }
  tlb_[address / kPage] = now;
  return now;
}

// The first stays until it is cleared. Client 0; VMID 0.
void HubModel::keep_fault(uint64_t address, bool is_write, bool is_mapped) {
  uint32_t& status = word(at_.l2 + kFaultStatus);
  if (status != 0) return;
  const uint32_t permissions = is_mapped ? (is_write ? 4u : 2u) : 1u;
  status = permissions << 4 | uint32_t(!is_mapped) << 8 | uint32_t(is_write) << 18;
  word(at_.l2 + kFaultAddress) = uint32_t(address / kPage);
  word(at_.l2 + kFaultAddress + 1) = uint32_t(address / kPage >> 32);
}

}  // namespace tuff::emu::amd
