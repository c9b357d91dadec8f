#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/check.h"
#include "base/os_nvrm.h"
#include "emu/nv/chip.h"
#include "emu/nv/mock.h"

namespace tuff::emu::nv {
namespace {

constexpr uint64_t kMostGpus = 8, kMostVramMib = 1u << 20;

uint64_t number_of(const std::string& name, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: a whole number is expected", name, text);
  return value;
}

uint64_t bounded(const std::string& name, uint64_t value, uint64_t least, uint64_t most) {
  if (value < least || value > most)
    fail<InvalidArgument>("TUFF_MOCK: {}:{}: from {} to {} is possible", name, value, least, most);
  return value;
}

void set_option(MockOptions& o, const std::string& name, uint64_t value) {
  if (name == "gpus") o.gpus = uint32_t(bounded(name, value, 1, kMostGpus));
  else if (name == "vram") o.vram_bytes = bounded(name, value, 64, kMostVramMib) << 20;
  else if (name == "seed") o.seed = value;
  else if (name == "fail") o.fail = value;
  else if (name == "status") o.status = uint32_t(bounded(name, value, 1, 0xffff));
  else if (name == "no_status") o.no_status = bounded(name, value, 0, 1) != 0;
  else if (name == "stop") o.stop = value;
  else if (name == "sm") {
    if (!find_chip(value)) fail<InvalidArgument>("TUFF_MOCK: sm:{}: 86 and 90 are emulated", value);
    o.sm = uint32_t(value);
  } else if (name == "driver") {
    const auto known = [&](const os::nvrm::Branch& b) { return b.number == value; };
    if (std::ranges::none_of(os::nvrm::kBranches, known))
      fail<InvalidArgument>("TUFF_MOCK: driver:{}: 535, 550, 570 and 580 are emulated", value);
    o.driver = uint32_t(value);
  } else {
    fail<InvalidArgument>(
        "TUFF_MOCK: '{}' is not known of an NVIDIA machine; known are gpus, vram (MiB), seed, sm, "
        "driver, fail, status, no_status, stop",
        name);
  }
}

}  // namespace

MockOptions parse_options(const std::string& text) {
  MockOptions options;
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const size_t colon = pair.find(':');
    const std::string name = pair.substr(0, colon);
    set_option(options, name,
               number_of(name, colon == std::string::npos ? "" : pair.substr(colon + 1)));
  }
  return options;
}

}  // namespace tuff::emu::nv
