#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/check.h"
#include "emu/amd/mock.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kMaxGpus = 8;
constexpr uint64_t kMaxVramMib = 1u << 20;  // 1 TiB

uint64_t parse_number(const std::string& name, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: a whole number is expected", name, text);
  return value;
}

uint64_t in_range(const std::string& name, uint64_t value, uint64_t least, uint64_t most) {
  if (value < least || value > most)
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: from {} to {} is possible", name, value, least, most);
  return value;
}

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
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const size_t colon = pair.find(':');
    const std::string name = pair.substr(0, colon);
    set(options, name,
        parse_number(name, colon == std::string::npos ? "" : pair.substr(colon + 1)));
  }
  return options;
}

}  // namespace tuff::emu::amd
