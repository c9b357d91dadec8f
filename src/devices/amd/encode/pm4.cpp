#include "devices/amd/encode/pm4.h"

#include <algorithm>

#include "base/check.h"
#include "devices/amd/encode/packets.h"

namespace tuff::devices::amd {

using namespace pm4;

void Pm4Writer::header(uint32_t opcode, uint32_t body_dwords) {
  if (xcc_begin_ == 0) w_.unit();  // a PRED_EXEC and what it governs stay together
  w_.dword(pm4::header(opcode, body_dwords));
}

void Pm4Writer::wait_for_idle() {
  header(EVENT_WRITE, 1);
  w_.dword(kCsPartialFlush);
}

void Pm4Writer::flush_hdp() {
  header(WAIT_REG_MEM, 6);
  w_.dword(kFunctionEqual | kWriteWaitWrite);
  w_.dword(reg::BIF_BX_PF_GPU_HDP_FLUSH_REQ);
  w_.dword(reg::BIF_BX_PF_GPU_HDP_FLUSH_DONE);
  w_.dword(kHdpFlushBit);
  w_.dword(kHdpFlushBit);
  w_.dword(kWaitInterval);
}

void Pm4Writer::acquire(bool system) {
  const bool gcr = gen_.caches == CacheControl::GcrCntl;
  header(ACQUIRE_MEM, gcr ? 7 : 6);
  uint32_t control = gcr ? kGlkInv | kGlvInv | kGl1Inv : kShKcacheAction | kTcl1Action;
  if (system) {
    control |= gcr ? kGliInv | kGl2Inv | kGl2Wb : kShIcacheAction | kTcAction | kTcWbAction;
  }
  w_.dword(gcr ? 0 : control);
  w_.dword(~0u);  // all addresses: size in units of 256 bytes, 40 bits
  w_.dword(0xff);
  w_.address(0);
  w_.dword(kPollInterval);
  if (gcr) w_.dword(control);
}

void Pm4Writer::wait_at_least(uint64_t address, const Operand& word) {
  header(WAIT_REG_MEM, 6);
  w_.dword(kFunctionGreaterEqual | kMemorySpace);
  w_.address(address);
  w_.lo(word);
  w_.dword(~0u);
  w_.dword(kWaitInterval);
}

void Pm4Writer::release_mem(uint32_t caches, uint32_t selects, uint64_t address,
                            const Operand& data, uint32_t event_id) {
  header(RELEASE_MEM, 7);
  w_.dword(kCacheFlushAndInvTs | caches);
  w_.dword(selects);
  w_.address(address);
  w_.lo(data);
  w_.dword(0);
  w_.dword(event_id);
}

void Pm4Writer::release(uint64_t address, const Operand& word) {
  const bool gcr = gen_.caches == CacheControl::GcrCntl;
  release_mem(gcr ? kReleaseGl2Wb : kReleaseTcWb | kReleaseTcNc, kDataSel32, address, word, 0);
}

void Pm4Writer::interrupt(uint64_t mailbox, uint32_t event_id) {
  release_mem(0, kDataSel32 | kIntSelAfterWrite, mailbox, event_id, event_id);
}

void Pm4Writer::timestamp(uint64_t address) { release_mem(0, kDataSelGpuClock, address, 0, 0); }

void Pm4Writer::copy(uint64_t dst, uint64_t src, uint64_t size_bytes) {
  for (uint64_t at = 0; at < size_bytes;) {
    const uint64_t bytes = std::min<uint64_t>(size_bytes - at, kDmaMaxBytes);
    header(DMA_DATA, 6);
    // The last part is waited for, so that what follows, a release above all, comes after it.
    w_.dword(kSrcL2 | kDstL2 | (at + bytes == size_bytes ? kCpSync : 0));
    w_.address(src + at);
    w_.address(dst + at);
    w_.dword(uint32_t(bytes));
    at += bytes;
  }
}

void Pm4Writer::set_registers(uint32_t first, std::span<const Operand> values) {
  header(SET_SH_REG, uint32_t(values.size()) + 1);
  w_.dword(first);
  for (const Operand& v : values) w_.lo(v);
}

void Pm4Writer::dispatch(const std::array<Operand, 3>& groups, uint32_t initiator) {
  header(DISPATCH_DIRECT, 4);
  for (const Operand& count : groups) w_.lo(count);
  w_.dword(initiator);
}

void Pm4Writer::dispatch_indirect(uint64_t address, uint32_t initiator) {
  TUFF_CHECK(address % 4 == 0, "launch size at {:#x}", address);
  header(DISPATCH_INDIRECT, 3);
  w_.address(address);
  w_.dword(initiator);
}

void Pm4Writer::begin_xcc(uint32_t mask) {
  header(PRED_EXEC, 1);
  w_.dword(mask << 24);
  xcc_begin_ = w_.size();
}

void Pm4Writer::end_xcc() {
  w_.at(xcc_begin_ - 1) |= w_.size() - xcc_begin_;
  xcc_begin_ = 0;
}

std::array<uint32_t, 4> indirect_buffer(uint64_t address, uint32_t dwords) {
  TUFF_CHECK(dwords > 0 && dwords <= kIbMaxDwords && address % 4 == 0,
             "indirect buffer of {} dwords at {:#x}", dwords, address);
  return {pm4::header(INDIRECT_BUFFER, 3), uint32_t(address), uint32_t(address >> 32),
          dwords | kIbValid};
}

}  // namespace tuff::devices::amd
