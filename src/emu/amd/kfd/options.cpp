#include <algorithm>

#include "base/check.h"
#include "emu/amd/mock.h"
#include "emu/kernel/options.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kMaxGpus = 8;
constexpr uint64_t kMaxVramMib = 1u << 20;  // 1 TiB

struct FaultName {
  const char* name;
  Fault::Kind kind;
};
constexpr FaultName kFaults[] = {{"stop", Fault::Kind::StopQueue},
                                 {"lost_interrupt", Fault::Kind::LoseInterrupt},
                                 {"ecc", Fault::Kind::Ecc},
                                 {"enomem", Fault::Kind::FailCall},
                                 {"reset", Fault::Kind::Reset}};

void set(MockOptions& options, const std::string& name, uint64_t value) {
  if (name == "gpus") {
    options.gpus = uint32_t(in_range(name, value, 1, kMaxGpus));
  } else if (name == "vram") {
    options.vram_bytes = in_range(name, value, 64, kMaxVramMib) << 20;
  } else if (name == "bar") {
    options.large_bar = in_range(name, value, 0, 1) != 0;
  } else if (name == "seed") {
    options.seed = value;
  } else {
    const auto* fault = std::find_if(std::begin(kFaults), std::end(kFaults),
                                     [&](const FaultName& f) { return name == f.name; });
    if (fault == std::end(kFaults)) {
      fail<InvalidArgument>(
          "TUFF_MOCK: '{}' is not known; known are gpus, vram (MiB), bar (0 or 1), seed, stop, "
          "lost_interrupt, ecc, enomem, reset",
          name);
    }
    options.faults.push_back({fault->kind, in_range(name, value, 1, ~uint64_t(0))});
  }
}

}  // namespace

MockOptions parse_options(const std::string& text) {
  MockOptions options;
  read_options(text, [&](const std::string& name, uint64_t value) { set(options, name, value); });
  return options;
}

}  // namespace tuff::emu::amd
