#include "devices/nv/pci/boot_registers.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "devices/nv/pci/falcon.h"
#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

namespace reg {
constexpr uint64_t VbiosScratch = 0x1400, Handoff = 0x1180f8, OwnStartMask = 0x118128,
                   OwnStart = 0x118234, UsableMiB = 0x1183a4, GspQueue = 0x110c00,
                   LockMask = 0x1fa7c8, ProtectedLow = 0x1fa824, ProtectedHigh = 0x1fa828,
                   LockLow = 0x1fa82c, LockHigh = 0x1fa830, Rom = 0x300000,
                   ScreenMemory = 0x625f04, DevelopmentDisabled = 0x82074c,
                   DisplayDisabled = 0x820c04, Sec2Fuses = 0x824140, GspFuses = 0x8241c0;
}
constexpr uint32_t kReadable = 1, kOwnStartDone = 0xff, kHandedOff = 1u << 26;
constexpr uint32_t kScreenValid = 1u << 3;
constexpr uint64_t kLegacyWindow = 1u << 20, kSmallScreen = 0x20000;

uint64_t page_address(uint32_t value) { return uint64_t{value >> 4} << 12; }

}  // namespace

void BootRegisters::wait_for(const char* what, uint64_t offset, uint32_t mask,
                             uint32_t value) const {
  const AwaitedRegister r = wait_for_register(device_, 0, offset, mask, value,
                                              std::chrono::milliseconds(timeout_ms_));
  if (!r.arrived)
    fail<DeviceLost>("{}: {} within {} ms (register {:#x} has {:#x})", device_.function().address,
                     what, timeout_ms_, offset, r.seen);
}

const Chip& BootRegisters::chip() const { return chip_of(read(kBoot0), read(kBoot42)); }

PciIdentity BootRegisters::identity() const {
  return {device_.read_config(0), device_.read_config(0x2c), uint8_t(device_.read_config(8))};
}

// How far it is may be read only once it allows that.
void BootRegisters::wait_for_own_start() const {
  wait_for("the GPU's own start has not begun", reg::OwnStartMask, kReadable, kReadable);
  wait_for("the GPU's own start has not ended", reg::OwnStart, 0xff, kOwnStartDone);
}

bool BootRegisters::is_for_development() const { return !(read(reg::DevelopmentDisabled) & 1); }

uint64_t BootRegisters::memory_bytes() const { return uint64_t{read(reg::UsableMiB)} << 20; }

uint64_t BootRegisters::screen_bytes() const {
  const uint64_t total = memory_bytes();
  uint64_t begin = total - std::min(total, kLegacyWindow);
  if (!(read(reg::DisplayDisabled) & 1)) {
    const uint32_t screen = read(reg::ScreenMemory);
    const uint64_t own = uint64_t{screen >> 8} << 16;
    if (screen & kScreenValid) begin = own < begin ? total - kSmallScreen : std::min(own, total);
  }
  if (!(read(reg::LockMask) & kReadable))
    fail<DeviceLost>("{}: what memory is locked may not be read", device_.function().address);
  const uint64_t low = page_address(read(reg::LockLow));
  const uint64_t high = page_address(read(reg::LockHigh));
  if (high >= low) begin = std::min(begin, low);
  return total - begin;
}

std::pair<uint64_t, uint64_t> BootRegisters::protected_memory() const {
  return {page_address(read(reg::ProtectedLow)), page_address(read(reg::ProtectedHigh))};
}

// The number of the highest bit that is blown, from 1 on.
uint32_t BootRegisters::fuse_version(uint64_t falcon, uint32_t ucode_id) const {
  constexpr uint32_t most = 16;
  if (ucode_id == 0 || ucode_id > most)
    fail<IoError>("{}: a signed program has id {}, of 1 to {}", device_.function().address,
                  ucode_id, most);
  const uint64_t fuses = falcon == kGspFalcon ? reg::GspFuses : reg::Sec2Fuses;
  return uint32_t(std::bit_width(read(fuses + 4 * (ucode_id - 1))));
}

// 256 Ki words: from a mapping, not by a call each.
Bytes BootRegisters::rom() const {
  std::byte* const mapped = device_.map(0, reg::Rom, kVbiosBytes);
  Bytes bytes(kVbiosBytes);
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
    const uint32_t word = *reinterpret_cast<const volatile uint32_t*>(mapped + i);
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  device_.unmap(mapped, kVbiosBytes);
  return bytes;
}

uint32_t BootRegisters::frts_error() const { return read(reg::VbiosScratch + 4 * 0x0e) >> 16; }
uint32_t BootRegisters::sb_error() const { return read(reg::VbiosScratch + 4 * 0x15) & 0xffff; }

void BootRegisters::wait_for_handoff() const {
  wait_for("the booter has not handed over", reg::Handoff, kHandedOff, kHandedOff);
}

void BootRegisters::ring_gsp() const { device_.write(0, reg::GspQueue, 0); }

}  // namespace tuff::devices::nv
