#include "emu/nv/pci/fsp_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuff::emu::nv {
namespace {

constexpr uint32_t kPlace = 0xfffc, kMovesOnWrite = 1u << 24, kMovesOnRead = 1u << 25;

}  // namespace

// The place counts bytes of words in its low 16 bits, since blocks have 256.
uint32_t& FspModel::word() {
  const uint32_t place = (window_ & kPlace) / 4;
  if (place >= memory_.size()) mistake_(fmt::format("word {} of FSP's window", place));
  return memory_[place % memory_.size()];
}

uint32_t FspModel::read(uint64_t offset) {
  switch (offset) {
    case 0x8f2ac0: return window_;
    case 0x8f2ac4: {
      const uint32_t value = word();
      if (window_ & kMovesOnRead) window_ += 4;
      return value;
    }
    case 0x8f2c00:
      if (has_packet_ && reads_ > 0 && --reads_ == 0) show_answer();
      return sent_head_;
    case 0x8f2c04: return sent_tail_;
    case 0x8f2c80:
      if (has_packet_ && reads_ > 0 && --reads_ == 0) show_answer();
      return head_;
    case 0x8f2c84: return tail_;
    default: mistake_(fmt::format("{:#x} of FSP is not known", offset)); return 0;
  }
}

void FspModel::write(uint64_t offset, uint32_t value) {
  switch (offset) {
    case 0x8f2ac0: window_ = value; return;
    case 0x8f2ac4:
      if (has_packet_) mistake_("a packet is written before the last was taken");
      word() = value;
      if (window_ & kMovesOnWrite) window_ += 4;
      return;
    case 0x8f2c04: sent_tail_ = value; return;
    case 0x8f2c00:
      sent_head_ = value;
      has_packet_ = true;
      reads_ = slowness;
      take_packet();
      return;
    case 0x8f2c84: tail_ = value; return;
    case 0x8f2c80: head_ = value; return;
    default: mistake_(fmt::format("{:#x} of FSP is not known", offset));
  }
}

// At once, as it would while the host looks elsewhere.
void FspModel::take_packet() {
  answer_.clear();
  const uint32_t words = (sent_tail_ - sent_head_) / 4 + 1;
  if (sent_head_ != 0 || sent_tail_ % 4 || words < 2 || words > memory_.size())
    return mistake_(fmt::format("a packet from {:#x} to {:#x}", sent_head_, sent_tail_));
  if (memory_[0] != 0xc0000000 || (memory_[1] & 0xffffff) != 0x10de7e)
    mistake_(fmt::format("a packet with headers {:#x} {:#x}", memory_[0], memory_[1]));
  const uint32_t kind = memory_[1] >> 24;
  const uint32_t error = take(kind, {memory_.begin() + 2, memory_.begin() + words});
  answer_ = answer({0xc0000000, 0x1510de7e, 1, kind, error});
}

void FspModel::show_answer() {
  has_packet_ = false;
  sent_head_ = sent_tail_;
  if (answer_.empty()) return;
  std::copy(answer_.begin(), answer_.end(), memory_.begin());
  head_ = 0;
  tail_ = uint32_t(4 * (answer_.size() - 1));
}

}  // namespace tuff::emu::nv
