// The copy engine of a channel: lines of bytes, from address to address. Source: NVIDIA
// open-gpu-doc classes/dma-copy/clc7b5.h.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "emu/nv/channel.h"

namespace tuff::emu::nv {
namespace {

constexpr size_t kMostCopies = 4;
constexpr uint64_t kBytesPerStep = 256 * 1024;

}  // namespace

bool Channel::copy_method(uint32_t method, uint32_t data) {
  if (method >= copy::OFFSET_IN_UPPER && method < copy::OFFSET_IN_UPPER + 16) {
    offsets_[(method - copy::OFFSET_IN_UPPER) / 4] = data;
  } else if (method == copy::LINE_LENGTH_IN) {
    line_bytes_ = data;
  } else if (method == copy::LAUNCH_DMA) {
    return start_copy(data);
  } else {
    bad(kClassError, "method {:#x} of the copy engine", method);
  }
  return true;
}

bool Channel::start_copy(uint32_t launch) {
  const uint32_t transfer = launch & copy::kTransfer;
  if (launch & ~(copy::kTransfer | copy::kFlush | copy::kPitchBoth) ||
      (launch & copy::kPitchBoth) != copy::kPitchBoth || transfer == 0 || transfer == 3)
    bad(kClassError, "LAUNCH_DMA {:#x}", launch);
  if (transfer == copy::kNonPipelined && !idle_copies()) return false;
  if (copies_.size() >= kMostCopies) return false;
  const auto place = [&](size_t upper) { return offsets_[upper + 1] | uint64_t(offsets_[upper]) << 32; };
  CopyJob job{accessor(copy_slot_, "a copy"), place(2), place(0), line_bytes_,
              (launch & copy::kFlush) != 0};
  if (job.dst < job.src + job.bytes && job.src < job.dst + job.bytes)
    bad(kClassError, "a copy of {} bytes from {:#x} to {:#x}: they overlap", job.bytes, job.src,
        job.dst);
  copies_.push_back(std::move(job));
  copied_last_ = true;
  return true;
}

void Channel::advance_copy(uint32_t index) {
  CopyJob& c = copies_[index];
  for (uint64_t done = 0; c.bytes > 0 && done < kBytesPerStep;) {
    const uint64_t bytes =
        std::min({c.bytes, kPageBytes - c.src % kPageBytes, kPageBytes - c.dst % kPageBytes});
    const uint8_t* from = reach(c.who, {c.src, uint32_t(bytes), Path::L2, true, false});
    uint8_t* to = reach(c.who, {c.dst, uint32_t(bytes), Path::L2, false, true});
    std::memmove(to, from, bytes);
    c.src += bytes, c.dst += bytes, c.bytes -= bytes, done += bytes;
  }
  if (c.bytes > 0) return;
  copies_flushed_ = c.flush;
  copies_.erase(copies_.begin() + index);
}

}  // namespace tuff::emu::nv
