#include "emu/amd/pci/psp_model.h"

#include <fmt/format.h>

#include <cstring>

#include "emu/amd/pci/register_names.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kReady = 1u << 31, kFirstMessage = 0x40, kMessages = 0x80;  // of C2PMSG
constexpr uint32_t kInitRing = 2, kDestroyRings = 3, kFrameDwords = 16;
constexpr uint32_t kSetupTmr = 5, kLoadIpFirmware = 6, kLoadToc = 0x20, kAutoloadRlc = 0x21;
constexpr uint32_t kCommandBytes = 1024, kStatus = 216, kProtectedSize = 220;
constexpr uint32_t kFailed = 0xffff0001;  // any status but 0 is one
constexpr uint32_t kToc = 4, kMecStack0 = 94, kMecStack3 = 97;

// In the order of psp_hw_start, with the types that the file has them by.
struct Component {
  uint32_t command, type;
  const char* name;
};
constexpr Component kComponents[] = {
    {0x80000, 3, "KDB"},   {0x10000000, 5, "SPL"}, {0x10000, 2, "SYSDRV"}, {0xb0000, 7, "SOCDRV"},
    {0xd0000, 8, "INTF"}, {0xc0000, 9, "DBG"},    {0xe0000, 10, "RAS"},   {0x20000, 1, "SOS"},
};
// Without which RLC can start nothing: both threads of SDMA, MEC, IMU, RLC.
constexpr uint32_t kNeeded[] = {71, 72, 89, 68, 69, 8};

uint64_t address_of(const uint32_t* words) { return uint64_t{words[1]} << 32 | words[0]; }

}  // namespace

void PspModel::power_on() {
  words_.assign(kMessages, 0);
  word(place::PspBootloader) = kReady;
  next_component_ = read_pointer_ = 0;
  has_ring_ = has_toc_ = is_protected_ = autoloaded_ = false;
  loaded_.clear();
}

bool PspModel::has(uint64_t at) {
  const uint64_t begin = register_place(Block::Mp0, 0, kFirstMessage);
  return at >= begin && at < begin + 4 * kMessages;
}

uint32_t& PspModel::word(uint64_t at) {
  return words_[(at - register_place(Block::Mp0, 0, kFirstMessage)) / 4];
}

uint32_t PspModel::read(uint64_t at) const { return const_cast<PspModel*>(this)->word(at); }

void PspModel::write(uint64_t at, uint32_t value) {
  word(at) = value;
  if (at == place::PspBootloader) boot(value);
  if (at == place::PspRingControl) control_ring(value);
  if (at == place::PspRingWritePointer) take_frames(value);
}

bool PspModel::takes_step() {
  if (steps_left_ == 0) return false;
  --steps_left_;
  return true;
}

// Sample firmware counts up from its type; each pipe of MEC has the same stack.
bool PspModel::is_firmware(uint64_t address, uint32_t size_bytes, uint32_t type, const char* who) {
  const uint32_t first = type > kMecStack0 && type <= kMecStack3 ? kMecStack0 : type;
  const std::byte* const bytes = memory_.at(address, size_bytes, who);
  if (bytes == nullptr) return false;
  bool same = size_bytes != 0;
  for (uint32_t i = 0; i < size_bytes; ++i) same &= uint8_t(bytes[i]) == uint8_t(first + i);
  if (!same) told_(fmt::format("{}: what lies there is no firmware of type {}", who, type));
  return same;
}

// ---- the bootloader, which is gone when sOS runs

void PspModel::boot(uint32_t command) {
  if (!takes_step()) return;
  if (word(place::PspSignOfLife) != 0)
    return told_("the PSP's bootloader is told something while sOS runs");
  size_t n = 0;
  while (n < std::size(kComponents) && kComponents[n].command != command) ++n;
  if (n == std::size(kComponents))
    return told_(fmt::format("the PSP's bootloader knows no command {:#x}", command));
  const Component& c = kComponents[n];
  if (n < next_component_ || (next_component_ == 0 && n != 0))
    return told_(fmt::format("the PSP's bootloader is given {} out of order", c.name));
  memory_.use("the PSP's bootloader");
  const uint64_t at = uint64_t{word(place::PspBootloaderMemory)} << 20;
  if (!is_firmware(at, 64, c.type, c.name)) return;
  next_component_ = n + 1;
  word(place::PspBootloader) = kReady | c.command;
  if (next_component_ < std::size(kComponents)) return;
  word(place::PspSignOfLife) = 0x80000012;
  word(place::PspRingControl) = kReady;
}

// ---- the ring

void PspModel::control_ring(uint32_t value) {
  if (!takes_step()) return;
  if (word(place::PspSignOfLife) == 0) return told_("a ring of the PSP while sOS does not run");
  const uint32_t command = value >> 16 & 0xf;
  if (command != kInitRing && command != kDestroyRings)
    return told_(fmt::format("the PSP knows no ring command {:#x}", value));
  if (command == kInitRing && has_ring_) return told_("the PSP has a ring already");
  has_ring_ = command == kInitRing;
  read_pointer_ = word(place::PspRingWritePointer) = 0;
  word(place::PspRingControl) = kReady;
}

void PspModel::take_frames(uint32_t write_pointer) {
  const uint32_t dwords = word(place::PspRingSize) / 4;
  if (!has_ring_) return told_("a frame for the PSP, which has no ring");
  if (dwords == 0 || write_pointer >= dwords || write_pointer % kFrameDwords != 0)
    return told_(fmt::format("the PSP's write pointer is {:#x}", write_pointer));
  const uint64_t at = uint64_t{word(place::PspRingHigh)} << 32 | word(place::PspRingLow);
  const std::byte* const ring = memory_.at(at, 4 * dwords, "the PSP's ring");
  if (ring == nullptr) return;
  memory_.use("the PSP");
  for (; read_pointer_ != write_pointer; read_pointer_ = (read_pointer_ + kFrameDwords) % dwords) {
    if (!takes_step()) return;
    uint32_t frame[kFrameDwords];
    std::memcpy(frame, ring + 4 * read_pointer_, sizeof frame);
    take_frame(frame);
  }
}

// Command buffer, its size, the fence and its value.
void PspModel::take_frame(const uint32_t* frame) {
  std::byte* const buffer = memory_.at(address_of(frame), kCommandBytes, "a command of the PSP");
  std::byte* const fence = memory_.at(address_of(frame + 3), 4, "a fence of the PSP");
  if (buffer == nullptr || fence == nullptr) return;
  if (frame[2] != kCommandBytes)
    return told_(fmt::format("a command of the PSP has {} bytes", frame[2]));
  uint32_t command[kCommandBytes / 4];
  std::memcpy(command, buffer, sizeof command);
  command[kStatus] = execute(command, command[kProtectedSize]);
  std::memcpy(buffer, command, sizeof command);
  std::memcpy(fence, frame + 5, sizeof frame[5]);
}

uint32_t PspModel::execute(const uint32_t* c, uint32_t& protected_bytes) {
  const uint64_t address = address_of(c + 7);
  switch (c[2]) {
    case kLoadToc:
      if (!is_firmware(address, c[9], kToc, "LOAD_TOC")) return kFailed;
      has_toc_ = true;
      protected_bytes = kProtectedBytes;
      return 0;
    case kSetupTmr:
      if (!has_toc_ || c[9] != kProtectedBytes || address % (1u << 20) != 0 ||
          memory_.at(address, c[9], "SETUP_TMR") == nullptr) {
        told_("SETUP_TMR: before LOAD_TOC, or not of the size that it said, or not aligned");
        return kFailed;
      }
      is_protected_ = true;
      return 0;
    case kLoadIpFirmware: return load(address, c[9], c[10]);
    case kAutoloadRlc: return autoload();
    default: told_(fmt::format("the PSP knows no command {:#x}", c[2])); return kFailed;
  }
}

// SMU's alone may come before memory is protected (pmfw_centralized_cstate_management).
uint32_t PspModel::load(uint64_t address, uint32_t size_bytes, uint32_t type) {
  if (!is_protected_ && type != PspModel::kSmuFirmware) {
    told_(fmt::format("LOAD_IP_FW of type {} before SETUP_TMR", type));
    return kFailed;
  }
  if (!is_firmware(address, size_bytes, type, "LOAD_IP_FW")) return kFailed;
  loaded_.insert(type);
  return 0;
}

uint32_t PspModel::autoload() {
  for (const uint32_t type : kNeeded)
    if (!has_loaded(type)) {
      told_(fmt::format("AUTOLOAD_RLC without firmware of type {}", type));
      return kFailed;
    }
  autoloaded_ = true;
  return 0;
}

}  // namespace tuff::emu::amd
