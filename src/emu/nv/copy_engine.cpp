// The copy engine of a channel: lines of bytes, from address to address. Source: NVIDIA
// open-gpu-doc classes/dma-copy/clc7b5.h.
#include <algorithm>
#include <cstring>

#include "emu/nv/copy_engine.h"

namespace tuff::emu::nv {
namespace {

constexpr size_t kMostCopies = 4;
constexpr uint64_t kBytesPerStep = 256 * 1024;

}  // namespace

bool CopyEngine::method(uint32_t number, uint32_t data) {
  if (number >= copy::OFFSET_IN_UPPER && number < copy::OFFSET_IN_UPPER + 16) {
    offsets_[(number - copy::OFFSET_IN_UPPER) / 4] = data;
  } else if (number == copy::LINE_LENGTH_IN) {
    line_bytes_ = data;
  } else if (number == copy::LAUNCH_DMA) {
    return start(data);
  } else {
    bad(kClassError, "method {:#x} of the copy engine", number);
  }
  return true;
}

bool CopyEngine::start(uint32_t launch) {
  const uint32_t transfer = launch & copy::kTransfer;
  if (launch & ~(copy::kTransfer | copy::kFlush | copy::kPitchBoth) ||
      (launch & copy::kPitchBoth) != copy::kPitchBoth || transfer == 0 || transfer == 3)
    bad(kClassError, "LAUNCH_DMA {:#x}", launch);
  if (transfer == copy::kNonPipelined && !idle()) return false;
  if (jobs_.size() >= kMostCopies) return false;
  const auto place = [&](size_t upper) {
    return offsets_[upper + 1] | uint64_t(offsets_[upper]) << 32;
  };
  Job job{issuer_.accessor(slot_, "a copy"), place(2), place(0), line_bytes_,
              (launch & copy::kFlush) != 0};
  if (job.dst < job.src + job.bytes && job.src < job.dst + job.bytes)
    bad(kClassError, "a copy of {} bytes from {:#x} to {:#x}: they overlap", job.bytes, job.src,
        job.dst);
  jobs_.push_back(std::move(job));
  return true;
}

bool CopyEngine::idle() {
  if (!jobs_.empty()) return false;
  if (flushed_) issuer_.order.add(op_id(issuer_.world.now(), slot_));
  return true;
}

void CopyEngine::advance(uint32_t index) {
  Job& c = jobs_[index];
  for (uint64_t done = 0; c.bytes > 0 && done < kBytesPerStep;) {
    const uint64_t bytes =
        std::min({c.bytes, kPageBytes - c.src % kPageBytes, kPageBytes - c.dst % kPageBytes});
    const uint8_t* from = issuer_.reach(c.who, {c.src, uint32_t(bytes), Path::L2, true, false});
    uint8_t* to = issuer_.reach(c.who, {c.dst, uint32_t(bytes), Path::L2, false, true});
    std::memmove(to, from, bytes);
    c.src += bytes, c.dst += bytes, c.bytes -= bytes, done += bytes;
  }
  if (c.bytes > 0) return;
  flushed_ = c.flush;
  jobs_.erase(jobs_.begin() + index);
}

}  // namespace tuff::emu::nv
