// What ends a channel: a method, an entry or a launch that the engine does not take, an access to
// what is not mapped. And the numbers of methods that are known. Used by everything in nv/.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tuff::emu::nv {

struct BadMethod {
  uint32_t error;  // as channel errors are numbered (os_nvrm.h)
  std::string why;
};
// An engine's access; Caches::fault() says where.
struct EngineFault {
  std::string what;
};

inline constexpr uint32_t kGraphicsException = 13, kMmuFault = 31, kHostError = 32,
                          kClassError = 69;

template <class... Args>
[[noreturn]] void bad(uint32_t error, fmt::format_string<Args...> text, Args&&... args) {
  throw BadMethod{error, fmt::format(text, std::forward<Args>(args)...)};
}

// Sources: NVIDIA open-gpu-doc classes/host/clc56f.h, compute/clc6c0.h, dma-copy/clc7b5.h.
namespace host {
inline constexpr uint32_t SET_OBJECT = 0x0, NOP = 0x8, NON_STALL_INTERRUPT = 0x20,
                          SEM_ADDR_LO = 0x5c, SEM_EXECUTE = 0x6c, WFI = 0x78, END = 0x100;
inline constexpr uint32_t kRelease = 1, kAcquireCircularGeq = 3, kOperation = 7,
                          kSwitchTsg = 1u << 12, kReleaseWfi = 1u << 20, kPayload64 = 1u << 24,
                          kTimestamp = 1u << 25;
}  // namespace host
namespace compute {
inline constexpr uint32_t SHARED_WINDOW_A = 0x2a0, PCAS_A = 0x2b4, PCAS2_B = 0x2c0,
                          LOCAL_SIZE_A = 0x2e4, LOCAL_MEMORY_A = 0x790, LOCAL_WINDOW_A = 0x7b0,
                          INVALIDATE_SHADER_CACHES_NO_WFI = 0x1698;
inline constexpr uint32_t kPrefetchSchedule = 9;
}  // namespace compute
namespace copy {
inline constexpr uint32_t LAUNCH_DMA = 0x300, OFFSET_IN_UPPER = 0x400, LINE_LENGTH_IN = 0x418;
inline constexpr uint32_t kTransfer = 3, kPipelined = 1, kNonPipelined = 2, kFlush = 1u << 2,
                          kPitchBoth = 3u << 7;
}  // namespace copy

}  // namespace tuff::emu::nv
