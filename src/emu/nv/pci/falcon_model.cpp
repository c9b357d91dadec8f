#include "emu/nv/pci/falcon_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tuff::emu::nv {
namespace {

constexpr uint32_t kBlock = 256;
// Registers that only keep what is written: mailboxes, OS, RM, BOOTVEC, DMACTL, DMATRFBASE, -MOFFS,
// -FBOFFS, -BASE1, TRANSCFG(0), FBIF_CTL, MOD_SEL, CURR_UCODE_ID, ENGIDMASK, PARAADDR(0).
constexpr uint32_t kKept[] = {0x40,  0x44,  0x80,  0x84,  0x104,  0x10c,  0x110,  0x114,
                              0x11c, 0x128, 0x600, 0x624, 0x1180, 0x1198, 0x119c, 0x1210};
constexpr uint32_t kDead = 0xbadf1100;  // what is read of an engine in reset

}  // namespace

uint32_t FalconModel::get(uint32_t offset) const {
  const auto found = kept_.find(offset);
  return found == kept_.end() ? 0 : found->second;
}

// True once it was read so often.
bool FalconModel::passes(uint32_t& reads) {
  if (reads > 0) --reads;
  return reads == 0;
}

void FalconModel::reset() {
  kept_.clear();
  tags.clear();
  std::fill(code.begin(), code.end(), 0);
  std::fill(data.begin(), data.end(), 0);
  halted = riscv = riscv_halted = riscv_chosen = core_chosen_ = runs_program_ = false;
  was_reset_ = true;
  scrubs_ = slowness;
}

void FalconModel::start_elsewhere(uint64_t argument, uint32_t error) {
  was_reset_ = true;
  scrubs_ = 0;
  riscv = riscv_chosen = error == 0;
  kept_[0x40] = error ? error : uint32_t(argument);
  kept_[0x44] = error ? 0 : uint32_t(argument >> 32);
  foreign_ = locked_ = slowness + 1;
}

uint32_t FalconModel::read(uint32_t offset) {
  constexpr uint32_t foreign = 0xbadf4141;
  if (foreign_ > 0) return --foreign_, foreign;
  if (locked_ > 0 && offset == 0xf4) {
    // It has read what it was started with, where that was no error.
    if (--locked_ == 0 && riscv) kept_[0x40] = kept_[0x44] = 0;
    return 1u << 13;
  }
  if (offset == 0x3c0) return in_reset_;
  if (in_reset_) return mistake_(fmt::format("{:#x} is read in reset", offset)), kDead;
  switch (offset) {
    case 0xf4: return (has_riscv ? 1u << 10 : 0) | (passes(scrubs_) ? 0 : 1u << 12);
    case 0x100:
      if (runs_program_ && passes(runs_)) halted = true;
      return (halted ? 1u << 4 : 0) | (through_alias ? 1u << 6 : 0);
    case 0x118: return passes(transfers_) ? 1u << 1 : 1;
    case 0x1388: return (riscv ? 1u << 7 : 0) | (riscv_halted ? 1u << 4 : 0);
    case 0x1668: return core_chosen_ && passes(selects_);
    default: break;
  }
  if (std::find(std::begin(kKept), std::end(kKept), offset) == std::end(kKept))
    mistake_(fmt::format("{:#x} is no register that is known", offset));
  return get(offset);
}

void FalconModel::write(uint32_t offset, uint32_t value) {
  if (offset == 0x3c0) {
    if (in_reset_ && value == 0) reset();
    in_reset_ = value & 1;
    return;
  }
  if (in_reset_ || !was_reset_)
    return mistake_(fmt::format("{:#x} is written before the end of a reset", offset));
  if (scrubs_ > 0) mistake_(fmt::format("{:#x} is written while memory is emptied", offset));
  if (offset == 0x118) return transfer(value);
  if (offset == 0x130 || offset == 0x100) {
    if (value != 2 || (offset == 0x130) != through_alias)
      return mistake_(fmt::format("{:#x} is written to {:#x}", value, offset));
    return start();
  }
  if (offset == 0x1668) {
    if (value != 0 && value != 0x110) mistake_(fmt::format("core {:#x} is chosen", value));
    core_chosen_ = value == 0;
    selects_ = slowness;
    riscv_chosen = value == 0x110 && has_riscv;
    return;
  }
  if (std::find(std::begin(kKept), std::end(kKept), offset) == std::end(kKept))
    return mistake_(fmt::format("{:#x} is written to {:#x}, which is not known", value, offset));
  kept_[offset] = value;
}

// 256 bytes from the host's memory, into code with its virtual address, or into data.
void FalconModel::transfer(uint32_t command) {
  const bool to_code = command == 0x614, to_data = command == 0x600;
  if (!to_code && !to_data) return mistake_(fmt::format("a transfer {:#x}", command));
  if (transfers_ > 0) mistake_("a transfer before the last has ended");
  if (get(0x10c) != 0 || get(0x600) != 5 || !(get(0x624) & 0x80))
    mistake_("a transfer that is not physical, from the host's coherent memory");
  const uint64_t address = ((uint64_t(get(0x128)) << 32 | get(0x110)) << 8) + get(0x11c);
  const uint32_t to = get(0x114);
  std::vector<uint8_t>& into = to_code ? code : data;
  if (to % kBlock || to > into.size() - kBlock || get(0x128) > 0x1ff)
    return mistake_(fmt::format("a transfer to {:#x} of {:#x} bytes", to, into.size()));
  const std::byte* const from = memory_.at(address, kBlock);
  if (!from) return;  // told by the bus
  std::memcpy(into.data() + to, from, kBlock);
  if (to_code) tags[to] = get(0x11c);
  transfers_ = slowness;
}

void FalconModel::start() {
  if (transfers_ > 0) mistake_("started before its transfers have ended");
  if (has_riscv && !core_chosen_) mistake_("started before its core was chosen");
  if (get(0x1180) != 1) mistake_("started without a kind of signature");
  const uint32_t entry = get(0x104);
  const uint32_t block = entry / kBlock * kBlock;
  const bool loaded = std::any_of(tags.begin(), tags.end(),
                                  [&](const auto& t) { return t.second == block; });
  if (!loaded) mistake_(fmt::format("started at {:#x}, where no code was loaded", entry));
  ++starts;
  halted = false;
  runs_program_ = program(*this);
  runs_ = slowness;
}

}  // namespace tuff::emu::nv
