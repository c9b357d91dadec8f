#include "emu/amd/pci/gpu_function.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace tuff::emu::amd {
namespace {

constexpr size_t kMemoryBar = 0, kDoorbellBar = 2, kRegisterBar = 5;
constexpr uint64_t kDiscoveryBeforeEnd = 64u << 10;
constexpr uint32_t kInMemory = 1u << 31, kBootDone = 1u << 31;

}  // namespace

GpuFunction::GpuFunction(const PciGpuOptions& options)
    : options_(options),
      memory_(options.memory_bytes, options.told),
      doorbells_(Pages::make(kDoorbellBytes, std::make_shared<PageFile>())),
      psp_(memory_, options.told),
      smu_(options.told),
      graphics_(Block::Gc, memory_, options.told),
      multimedia_(Block::Mmhub, memory_, options.told) {
  const samples::Bytes table = samples::sample_discovery(options_.blocks);
  std::memcpy(memory_.pages().data() + options_.memory_bytes - kDiscoveryBeforeEnd, table.data(),
              table.size());
}

void GpuFunction::power_on() {
  registers_.clear();
  psp_.power_on();
  smu_.power_on();
  graphics_.power_on();
  multimedia_.power_on();
}

void GpuFunction::reset() {
  ++resets_;
  power_on();
}

intptr_t GpuFunction::map(size_t bar, uint64_t offset, size_t size_bytes, int protection) {
  const Pages& pages = bar == kDoorbellBar ? doorbells_ : memory_.pages();
  if ((bar != kMemoryBar && bar != kDoorbellBar) || offset != 0 || size_bytes > pages.size_bytes())
    return -EINVAL;
  return pages.map_at(nullptr, size_bytes, protection, MAP_SHARED);
}

// By MM_INDEX and MM_INDEX_HI; null where there is none, or no bit says that memory is meant.
std::byte* GpuFunction::indexed_memory() {
  const uint32_t low = registers_[place::kMmIndex];
  const uint64_t at = uint64_t{registers_[place::kMmIndexHigh]} << 31 | (low & ~kInMemory);
  const bool there = (low & kInMemory) && at + 4 <= options_.memory_bytes;
  return there ? memory_.pages().data() + at : nullptr;
}

uint32_t GpuFunction::read(size_t bar, uint64_t offset) {
  if (bar != kRegisterBar || offset + 4 > kRegisterBytes) {
    options_.told(fmt::format("a read of BAR {} at {:#x}", bar, offset));
    return ~0u;
  }
  if (offset == place::RsmuData) return read_register(registers_[place::RsmuIndex]);
  if (offset == place::kMmData) {
    uint32_t value = ~0u;
    if (const std::byte* const from = indexed_memory()) std::memcpy(&value, from, sizeof value);
    return value;
  }
  return read_register(offset);
}

void GpuFunction::write(size_t bar, uint64_t offset, uint32_t value) {
  if (bar != kRegisterBar || offset + 4 > kRegisterBytes)
    return options_.told(fmt::format("a write to BAR {} at {:#x}", bar, offset));
  if (offset == place::RsmuData) return write_register(registers_[place::RsmuIndex], value);
  if (offset == place::kMmData) {
    if (std::byte* const to = indexed_memory()) std::memcpy(to, &value, sizeof value);
    return;
  }
  write_register(offset, value);
}

uint32_t GpuFunction::read_register(uint64_t at) {
  if (at == place::kConfigMemsize) return uint32_t(options_.memory_bytes >> 20);
  if (at == place::RLC_RLCS_BOOTLOAD_STATUS) return psp_.is_autoloaded() ? kBootDone : 0;
  if (SmuModel::has(at)) return smu_.read(at, psp_.has_loaded(PspModel::kSmuFirmware));
  if (PspModel::has(at)) return psp_.read(at);
  if (graphics_.has(at)) return graphics_.read(at);
  if (multimedia_.has(at)) return multimedia_.read(at);
  return registers_[at];
}

void GpuFunction::write_register(uint64_t at, uint32_t value) {
  if (const auto flush = registers_.find(place::RemapHdpFlush);
      flush != registers_.end() && at == flush->second)
    return memory_.flush();
  if (SmuModel::has(at)) {
    if (smu_.write(at, value, psp_.has_loaded(PspModel::kSmuFirmware))) reset();
    return;
  }
  if (PspModel::has(at)) return psp_.write(at, value);
  if (graphics_.has(at)) return graphics_.write(at, value);
  if (multimedia_.has(at)) return multimedia_.write(at, value);
  if (at == place::CP_HQD_DEQUEUE_REQUEST) registers_[place::CP_HQD_ACTIVE] = 0;
  registers_[at] = value;
}

}  // namespace tuff::emu::amd
