// Names for the tables of packets and registers, and the bits of packets' fields that are used.
// Included by the encoders alone. Each value's source stands in packets.def or beside it.
#pragma once

#include <cstdint>

namespace tuff::devices::amd {

namespace reg {
#define AMD_SH_REGISTER(name, offset) inline constexpr uint32_t name = offset;
#define AMD_REGISTER(name, address) inline constexpr uint32_t name = address;
#include "devices/amd/encode/registers.def"
inline constexpr uint32_t kShBase = 0x200;  // Generation::rsrc3 counts from here
}  // namespace reg

namespace pm4 {
#define AMD_PM4(name, opcode) inline constexpr uint32_t name = opcode;
#include "devices/amd/encode/packets.def"

constexpr uint32_t header(uint32_t opcode, uint32_t body_dwords) {
  return 3u << 30 | (body_dwords - 1) << 16 | opcode << 8;
}
// A NOP of one dword: its count of 0x3fff says that nothing follows.
inline constexpr uint32_t kNopDword = 3u << 30 | 0x3fffu << 16 | NOP << 8;

// COMPUTE_DISPATCH_INITIATOR
inline constexpr uint32_t kComputeShaderEn = 1u << 0, kForceStartAt000 = 1u << 2,
                          kCsW32En = 1u << 15;
// EVENT_WRITE and RELEASE_MEM
inline constexpr uint32_t kCsPartialFlush = 0x07 | 4u << 8;                  // event type, index
inline constexpr uint32_t kCacheFlushAndInvTs = 0x14 | 5u << 8;              // end of pipe
inline constexpr uint32_t kReleaseGl2Wb = 1u << 21;                          // gfx10+
inline constexpr uint32_t kReleaseTcWb = 1u << 15, kReleaseTcNc = 1u << 19;  // gfx9
inline constexpr uint32_t kDataSel32 = 1u << 29, kDataSelGpuClock = 3u << 29;
inline constexpr uint32_t kIntSelAfterWrite = 2u << 24;
// ACQUIRE_MEM: GCR_CNTL of gfx10+
inline constexpr uint32_t kGliInv = 1u << 0, kGlkInv = 1u << 7, kGlvInv = 1u << 8,
                          kGl1Inv = 1u << 9, kGl2Inv = 1u << 14, kGl2Wb = 1u << 15;
// ACQUIRE_MEM: CP_COHER_CNTL of gfx9
inline constexpr uint32_t kTcWbAction = 1u << 18, kTcl1Action = 1u << 22, kTcAction = 1u << 23,
                          kShKcacheAction = 1u << 27, kShIcacheAction = 1u << 29;
inline constexpr uint32_t kPollInterval = 10;
// WAIT_REG_MEM
inline constexpr uint32_t kFunctionEqual = 3, kFunctionGreaterEqual = 5, kMemorySpace = 1u << 4,
                          kWriteWaitWrite = 1u << 6, kWaitInterval = 4;
// BIF_BX_PF_GPU_HDP_FLUSH_REQ and _DONE: CP2, the bit of the first compute pipe (nbio_*_sh_mask.h)
inline constexpr uint32_t kHdpFlushBit = 1u << 2;
// DMA_DATA
inline constexpr uint32_t kSrcL2 = 3u << 29, kDstL2 = 3u << 20, kCpSync = 1u << 31;
inline constexpr uint32_t kDmaMaxBytes = (1u << 26) - 64;  // 26 bits of count, whole cache lines
// INDIRECT_BUFFER
inline constexpr uint32_t kIbValid = 1u << 23, kIbMaxDwords = (1u << 20) - 1;
}  // namespace pm4

namespace sdma {
#define AMD_SDMA(name, op) inline constexpr uint32_t name = op;
#include "devices/amd/encode/packets.def"
inline constexpr uint32_t kMtypeUncached = 3u << 16;  // of FENCE
inline constexpr uint32_t kPollMemory = 1u << 31, kPollGreaterEqual = 5u << 28;
inline constexpr uint32_t kPollForever = 0xfffu << 16 | 4;  // retry count, interval
inline constexpr uint32_t kHdpFlushMarker = 1u << 31;       // dword 2 of POLL_REGMEM, all else 0
// GCR_USER, dword 2: GCR_CNTL's bits 0..15 in its upper half
inline constexpr uint32_t gcr(uint32_t control) { return control << 16; }
}  // namespace sdma

namespace aql {
#define AMD_AQL(name, type) inline constexpr uint32_t name = type;
#include "devices/amd/encode/packets.def"
inline constexpr uint32_t kPacketDwords = 16;
inline constexpr uint32_t kBarrierBit = 1u << 8;
inline constexpr uint32_t kFenceAgent = 1, kFenceSystem = 2;
constexpr uint32_t fences(uint32_t scope) { return scope << 9 | scope << 11; }
inline constexpr uint32_t kThreeDimensions = 3u << 16;
inline constexpr uint32_t kFormatPm4Ib = 1u << 16;
inline constexpr uint32_t kPm4IbRemaining = 10;  // dwords of the packet behind the IB's
}  // namespace aql

}  // namespace tuff::devices::amd
