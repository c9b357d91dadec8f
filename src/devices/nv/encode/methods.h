// The methods in use and the words that carry them. Included by the encoder alone.
// Sources: NVIDIA open-gpu-doc classes/host/clc56f.h and clc76f.h (host), compute/clc6c0.h,
// clcbc0.h and clcec0.h, dma-copy/clc7b5.h and clc8b5.h; the offsets are the same in all of them.
#pragma once

#include <cstdint>

namespace tuff::devices::nv {

inline constexpr uint32_t kHostSubchannel = 0, kComputeSubchannel = 1, kCopySubchannel = 4;

namespace method {
inline constexpr uint32_t SET_OBJECT = 0x0;
// Host
inline constexpr uint32_t NOP = 0x8;
inline constexpr uint32_t NON_STALL_INTERRUPT = 0x20, SEM_ADDR_LO = 0x5c, WFI = 0x78;
// Compute
inline constexpr uint32_t SET_SHADER_SHARED_MEMORY_WINDOW_A = 0x2a0, SEND_PCAS_A = 0x2b4,
                          SEND_SIGNALING_PCAS2_B = 0x2c0,
                          SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A = 0x2e4,
                          SET_SHADER_LOCAL_MEMORY_A = 0x790,
                          SET_SHADER_LOCAL_MEMORY_WINDOW_A = 0x7b0,
                          INVALIDATE_SHADER_CACHES_NO_WFI = 0x1698;
// Copy
inline constexpr uint32_t LAUNCH_DMA = 0x300, OFFSET_IN_UPPER = 0x400, LINE_LENGTH_IN = 0x418;
}  // namespace method

// One word, then `count` words of data for ascending methods.
constexpr uint32_t increasing(uint32_t subchannel, uint32_t method, uint32_t count) {
  return 1u << 29 | count << 16 | subchannel << 13 | method >> 2;
}

// One word and `count` words behind it that do nothing.
constexpr uint32_t nothing(uint32_t count) { return 3u << 29 | count << 16 | method::NOP >> 2; }

// SEM_EXECUTE
inline constexpr uint32_t kSemRelease = 1, kSemAcquireCircularGeq = 3, kSemSwitchTsg = 1u << 12,
                          kSemReleaseWfi = 1u << 20, kSemPayload64 = 1u << 24,
                          kSemTimestamp = 1u << 25;
inline constexpr uint32_t kWfiAll = 1;
inline constexpr uint32_t kInvalidateInstructions = 1u << 0;
inline constexpr uint32_t kPcasPrefetchSchedule = 9;
// LAUNCH_DMA: waits for the copies before it, both sides linear, writes flushed.
inline constexpr uint32_t kNonPipelined = 2, kFlush = 1u << 2, kSourcePitch = 1u << 7,
                          kDestinationPitch = 1u << 8;
inline constexpr uint64_t kCopyMaxBytes = 1ull << 31;
inline constexpr uint32_t kAddressBits = 40;  // of semaphores, pushbuffers and QMDs

}  // namespace tuff::devices::nv
