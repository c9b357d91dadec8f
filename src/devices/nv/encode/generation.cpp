#include "devices/nv/encode/generation.h"

#include <algorithm>

namespace tuff::devices::nv {
namespace {

// Bank 0 as ptxas 12.9 and 13.5 use it (docs/design/nv.md); Blackwell's windows and stack pointer as
// tinygrad @a9069c1 runtime/ops_nv.py fills them. At 0x118 of Ampere's, 0x208 of Hopper's and 0x358
// of Blackwell's there is a descriptor of global memory, whose contents are not published: it stays
// 0.
constexpr BankLayout kAmpereBank{0x0, 0xc, 0x18, 0x20, 0x28};
constexpr BankLayout kHopperBank{0x0, 0xc, kNowhere, 0x20, 0x28};
constexpr BankLayout kBlackwellBank{0x360, 0x370, 0x2f0, 0x2f8, 0x37c};
constexpr QmdShifts kInBytes{0, 0, 0, 0}, kHopperShifts{0, 0, 0, 6}, kBlackwellShifts{4, 7, 4, 6};

// SASS versions: what RM says of an SM, 0xa04 for sm_120, as tinygrad writes it into QMDs.
// Classes: open-gpu-kernel-modules, src/nvidia/generated/g_gpu_class_list.c. Shared memory: CUDA
// C++ Programming Guide, 16 (compute capabilities).
constexpr Generation kGenerations[] = {
    {"ampere", 86, 0xc7c0, 0xc7b5, 3, 64, 0x86, kInBytes, {0, 8, 16, 32, 64, 100}, kAmpereBank},
    {"ada", 89, 0xc9c0, 0xc7b5, 3, 64, 0x89, kInBytes, {0, 8, 16, 32, 64, 100}, kAmpereBank},
    {"hopper", 90, 0xcbc0, 0xc8b5, 4, 96, 0x90, kHopperShifts,
     {0, 8, 16, 32, 64, 100, 132, 164, 196, 228}, kHopperBank},
    {"blackwell", 120, 0xcec0, 0xcab5, 5, 96, 0xa4, kBlackwellShifts, {0, 8, 16, 32, 64, 100},
     kBlackwellBank},
};
// GPUs of sm_120 list newer ones too (0xca6f, 0xc761), of which nothing is needed.
constexpr uint32_t kGpfifoClasses[] = {0xc96f, 0xc86f, 0xc56f};
constexpr uint32_t kUsermodeClasses[] = {0xc661, 0xc561, 0xc461};

}  // namespace

const Generation& ampere() { return kGenerations[0]; }
const Generation& hopper() { return kGenerations[2]; }
const Generation& blackwell() { return kGenerations[3]; }

const Generation* find_generation(uint32_t sm, std::span<const uint32_t> listed) {
  for (const Generation& g : kGenerations) {
    if (g.sm == sm && std::ranges::find(listed, g.compute_class) != listed.end() &&
        std::ranges::find(listed, g.copy_class) != listed.end())
      return &g;
  }
  return nullptr;
}

std::vector<std::string_view> generation_names() {
  std::vector<std::string_view> names;
  for (const Generation& g : kGenerations) names.push_back(g.name);
  return names;
}

std::span<const uint32_t> gpfifo_classes() { return kGpfifoClasses; }
std::span<const uint32_t> usermode_classes() { return kUsermodeClasses; }

uint32_t newest_class(std::span<const uint32_t> known, std::span<const uint32_t> listed) {
  for (const uint32_t c : known)
    if (std::ranges::find(listed, c) != listed.end()) return c;
  return 0;
}

}  // namespace tuff::devices::nv
