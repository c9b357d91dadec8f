#include <algorithm>

#include "base/check.h"
#include "base/os_nvrm.h"
#include "emu/kernel/options.h"
#include "emu/nv/chip.h"
#include "emu/nv/mock.h"

namespace tuff::emu::nv {
namespace {

constexpr uint64_t kMostGpus = 8, kMostVramMib = 1u << 20;

void set_option(MockOptions& o, const std::string& name, uint64_t value) {
  if (name == "gpus") o.gpus = uint32_t(in_range(name, value, 1, kMostGpus));
  else if (name == "vram") o.vram_bytes = in_range(name, value, 64, kMostVramMib) << 20;
  else if (name == "pci") o.pci = in_range(name, value, 0, 1) != 0;
  else if (name == "seed") o.seed = value;
  else if (name == "peers") o.peers = MockOptions::Peers(in_range(name, value, 0, 2));
  else if (name == "fail") o.fail = value;
  else if (name == "status") o.status = uint32_t(in_range(name, value, 1, 0xffff));
  else if (name == "no_status") o.no_status = in_range(name, value, 0, 1) != 0;
  else if (name == "stop") o.stop = value;
  else if (name == "sm") {
    if (!find_chip(value))
      fail<InvalidArgument>("TUFF_MOCK: sm:{}: 86, 90 and 120 are emulated", value);
    o.sm = uint32_t(value);
  } else if (name == "driver") {
    const auto known = [&](const os::nvrm::Branch& b) { return b.number == value; };
    if (std::ranges::none_of(os::nvrm::kBranches, known))
      fail<InvalidArgument>("TUFF_MOCK: driver:{}: 535, 550, 570 and 580 are emulated", value);
    o.driver = uint32_t(value);
  } else {
    fail<InvalidArgument>(
        "TUFF_MOCK: '{}' is not known of an NVIDIA machine; known are gpus, pci, vram (MiB), seed, "
        "sm, driver, peers (0 none, 1 PCIe, 2 NVLink), fail, status, no_status, stop",
        name);
  }
}

}  // namespace

MockOptions parse_options(const std::string& text) {
  MockOptions options;
  bool named = false;  // the driver
  read_options(text, [&](const std::string& name, uint64_t value) {
    set_option(options, name, value);
    named = named || name == "driver";
  });
  constexpr uint32_t of_firmware = 570;
  if (options.pci && (options.gpus > 1 || (named && options.driver != of_firmware)))
    fail<InvalidArgument>("TUFF_MOCK: pci:1 is one GPU, with firmware of branch {}", of_firmware);
  if (options.pci) options.driver = of_firmware;
  const uint32_t first = find_chip(options.sm)->first_driver;
  if (named && options.driver < first)
    fail<InvalidArgument>("TUFF_MOCK: driver:{} does not know sm_{}; the first is {}",
                          options.driver, options.sm, first);
  options.driver = std::max(options.driver, first);
  return options;
}

}  // namespace tuff::emu::nv
