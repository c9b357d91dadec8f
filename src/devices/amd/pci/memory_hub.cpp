#include "devices/amd/pci/memory_hub.h"

#include "base/check.h"

namespace tuff::devices::amd {

// Both hubs have the same registers, in four groups that lie elsewhere.
struct MemoryHub::Places {
  Hwid block;
  uint32_t l2, context, memory, default_page;
};

namespace {

// In dwords from a group's begin: the second-level cache, and what faults.
enum L2 : uint32_t {
  kL2Control = 0,
  kL2Control2 = 1,
  kL2Control3 = 2,
  kFaultControl = 8,
  kFaultControl2 = 9,
  kFaultStatus = 12,
  kFaultAddress = 13,
  kFaultPage = 15,
  kIdentityLow = 18,
  kIdentityHigh = 20,
  kIdentityOffset = 22,
  kL2Control4 = 24,
  kL2Reserved = 27,  // BANK_SELECT_RESERVED_CID2
  kL2Control5 = 30,
};
// Context 0 and what invalidates.
enum Context : uint32_t {
  kContextControl = 0,
  kSemaphore17 = 0x22,
  kRequest17 = 0x34,
  kAcknowledge17 = 0x46,
  kRanges = 0x47,  // two words for each engine
  kRoot = 0x6b,
  kFirstPage = 0x8b,
  kLastPage = 0xab,
};
// Where memory is.
enum Memory : uint32_t {
  kMemoryBase = 0,
  kMemoryTop = 1,
  kAgpTop = 2,
  kAgpBottom = 3,
  kAgpBase = 4,
  kApertureLow = 5,
  kApertureHigh = 6,
  kL1Control = 7,
};
enum DefaultPage : uint32_t { kMemoryOffset = 0, kDefaultPage = 1 };

constexpr uint32_t kEngines = 18;
constexpr uint32_t kMemoryUnit = 24, kApertureUnit = 18, kPageUnit = 12;
constexpr uint32_t kMemoryMask = 0xff'ffff;
// ENABLE_L1_TLB, SYSTEM_ACCESS_MODE 3, ENABLE_ADVANCED_DRIVER_MODEL, MTYPE 3 (uncached).
constexpr uint32_t kL1Mask = 1 | 3u << 3 | 1u << 5 | 1u << 6 | 0xfu << 7 | 7u << 11;
constexpr uint32_t kL1Value = 1 | 3u << 3 | 1u << 6 | 3u << 11;
// ENABLE_L2_CACHE, no fragments, DEFAULT_PAGE_OUT, CONTEXT1_IDENTITY_ACCESS_MODE 1.
constexpr uint32_t kL2Mask = 3 | 1u << 8 | 1u << 11 | 1u << 18 | 3u << 19 | 31u << 21;
constexpr uint32_t kL2Value = 1 | 1u << 11 | 1u << 19;
constexpr uint32_t kInvalidateCaches = 3;
// BANK_SELECT 9, BIGK_FRAGMENT_SIZE 6, both associativities.
constexpr uint32_t kL2Value3 = 9 | 6u << 15 | 1u << 20 | 1u << 31;
constexpr uint32_t kL2Mask4 = 3u << 6, kL2Mask5 = 31;
constexpr uint32_t kReadRetry = 1u << 18;
// ENABLE_CONTEXT, three levels below the root, every kind of fault kept and led to the spare page.
constexpr uint32_t kContextValue = 1 | 3u << 1 | 0x3fffu << 9;
constexpr uint64_t kRootValid = 1;
// VMID 0, every level, both caches.
constexpr uint32_t kInvalidateAll = 1 | 0x1fu << 19;
constexpr uint32_t kPrivateInvalidation = 1u << 25;

}  // namespace

const MemoryHub::Places& MemoryHub::places() const {
  static constexpr Places graphics = {Hwid::Gc, 0x15bc, 0x1688, 0x1678, 0x15a7};
  static constexpr Places multimedia = {Hwid::Mmhub, 0x700, 0x740, 0x8ec, 0x8d7};
  return hub_ == Hub::Graphics ? graphics : multimedia;
}

GpuRegister MemoryHub::at(const char* name, uint32_t offset) const {
  return {name, places().block, 0, offset};
}
uint32_t MemoryHub::read(uint32_t offset) const {
  return registers_.read(at("a register of a memory hub", offset));
}
void MemoryHub::write(uint32_t offset, uint32_t value) const {
  registers_.write(at("a register of a memory hub", offset), value);
}
void MemoryHub::write_pair(uint32_t offset, uint64_t value) const {
  write(offset, uint32_t(value));
  write(offset + 1, uint32_t(value >> 32));
}
void MemoryHub::update(uint32_t offset, uint32_t mask, uint32_t value) const {
  write(offset, (read(offset) & ~mask) | value);
}

std::pair<uint64_t, uint64_t> MemoryHub::memory() const {
  const uint64_t begin = read(places().memory + kMemoryBase) & kMemoryMask;
  const uint64_t top = read(places().memory + kMemoryTop) & kMemoryMask;
  if (top < begin)
    fail<DeviceLost>("{}: the GPU's memory ends before it begins ({:#x}, {:#x})",
                     registers_.device().function().address, begin, top);
  return {begin << kMemoryUnit, (top << kMemoryUnit) + (1ull << kMemoryUnit) - 1};
}

uint64_t MemoryHub::memory_offset() const {
  return uint64_t{read(places().default_page + kMemoryOffset) & kMemoryMask} << kMemoryUnit;
}

void MemoryHub::start(const HubSetup& setup) const {
  start_apertures(setup);
  start_caches();
  start_context(setup);
}

// No AGP: it ends before it begins.
void MemoryHub::start_apertures(const HubSetup& s) const {
  const Places& p = places();
  write(p.memory + kAgpBase, 0);
  write(p.memory + kAgpBottom, kMemoryMask);
  write(p.memory + kAgpTop, 0);
  write(p.memory + kApertureLow, uint32_t(s.memory_begin >> kApertureUnit));
  write(p.memory + kApertureHigh, uint32_t(s.memory_end >> kApertureUnit));
  write_pair(p.default_page + kDefaultPage, s.spare_page >> kPageUnit);
  write_pair(p.l2 + kFaultPage, s.fault_page >> kPageUnit);
  update(p.l2 + kFaultControl2, kReadRetry, kReadRetry);
}

void MemoryHub::start_caches() const {
  const Places& p = places();
  update(p.memory + kL1Control, kL1Mask, kL1Value);
  update(p.l2 + kL2Control, kL2Mask, kL2Value);
  update(p.l2 + kL2Control2, kInvalidateCaches, kInvalidateCaches);
  write(p.l2 + kL2Control3, kL2Value3);
  update(p.l2 + kL2Control4, kL2Mask4, 0);
  update(p.l2 + kL2Control5, kL2Mask5, 0);
}

void MemoryHub::start_context(const HubSetup& s) const {
  const Places& p = places();
  write_pair(p.context + kFirstPage, s.first_address >> kPageUnit);
  write_pair(p.context + kLastPage, s.last_address >> kPageUnit);
  write_pair(p.context + kRoot, s.root | kRootValid);
  write(p.context + kContextControl, kContextValue);
  write_pair(p.l2 + kIdentityLow, 0xf'ffff'ffff);
  write_pair(p.l2 + kIdentityHigh, 0);
  write_pair(p.l2 + kIdentityOffset, 0);
  for (uint32_t engine = 0; engine < kEngines; ++engine)
    write_pair(p.context + kRanges + 2 * engine, 0x1f'ffff'ffff);
}

// The semaphore is MMHUB's alone: it could go to sleep in between.
void MemoryHub::flush() const {
  const Places& p = places();
  registers_.flush_writes();
  const bool multimedia = hub_ == Hub::Multimedia;
  if (multimedia)
    registers_.wait_for("a memory hub's semaphore cannot be had",
                        at("VM_INVALIDATE_ENG17_SEM", p.context + kSemaphore17), 1, 1);
  write(p.context + kRequest17, kInvalidateAll);
  registers_.wait_for("a memory hub does not forget old entries",
                      at("VM_INVALIDATE_ENG17_ACK", p.context + kAcknowledge17), 1, 1);
  if (!multimedia) return;
  write(p.context + kSemaphore17, 0);
  update(p.l2 + kL2Reserved, kPrivateInvalidation, kPrivateInvalidation);
  (void)read(p.l2 + kL2Reserved);
}

std::optional<HubFault> MemoryHub::take_fault() const {
  const Places& p = places();
  const uint32_t status = read(p.l2 + kFaultStatus);
  if (status == 0) return std::nullopt;
  if (status == ~0u)
    fail<DeviceLost>("{}: the GPU does not answer any more",
                     registers_.device().function().address);
  HubFault f;
  const uint64_t high = read(p.l2 + kFaultAddress + 1) & 0xf;
  f.address = (high << 32 | read(p.l2 + kFaultAddress)) << kPageUnit;
  f.walker = status >> 1 & 7;
  f.permissions = status >> 4 & 0xf;
  f.mapping = status >> 8 & 1;
  f.client = status >> 9 & 0x1ff;
  f.write = status >> 18 & 1;
  f.atomic = status >> 19 & 1;
  f.vmid = status >> 20 & 0xf;
  update(p.l2 + kFaultControl, 1, 1);
  return f;
}

// Permissions are bits: valid, read, write, execute.
std::string to_text(const HubFault& f) {
  const char* access = f.atomic ? "an atomic" : f.write ? "a write" : "a read";
  const char* why = f.mapping || f.walker != 0 || f.permissions & 1
                        ? "the page is not mapped for this GPU"
                    : f.permissions != 0 ? "the page does not allow it"
                                         : "reason unknown";
  return fmt::format("memory access fault at {:#x}: {}: {} (client {}, VMID {})", f.address, access,
                     why, f.client, f.vmid);
}

}  // namespace tuff::devices::amd
