#include "devices/named_gpu.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::devices {
namespace {

bool is_gpu(const GpuMaker& maker, const PciFunction& f) {
  return std::ranges::count(maker.classes, f.class_code >> 8) > 0;
}

[[noreturn]] void fail_unnamed(os::Kernel& kernel, const GpuMaker& maker) {
  std::vector<std::string> gpus;
  for (const PciFunction& f : pci_functions(kernel, maker.vendor))
    if (is_gpu(maker, f)) gpus.push_back(describe(f));
  fail<Unsupported>("{} touches no GPU but the one that {} names, as {}={}; on the bus: {}",
                    maker.setting, maker.variable, maker.variable, "0000:01:00.0",
                    gpus.empty() ? fmt::format("none of {}", maker.name)
                                 : fmt::format("{}", fmt::join(gpus, ", ")));
}

}  // namespace

PciFunction named_gpu(os::Kernel& kernel, const GpuMaker& maker, const std::string& address) {
  if (address.empty()) fail_unnamed(kernel, maker);
  PciFunction f = pci_function(kernel, pci_address(address, maker.variable));
  if (f.vendor != maker.vendor)
    fail<Unsupported>("{}: {} is not {} ({:04x})", maker.variable, describe(f), maker.name,
                      maker.vendor);
  if (!is_gpu(maker, f))
    fail<Unsupported>("{}: {} of class {:#08x} is no GPU (classes {:#06x} and {:#06x})",
                      maker.variable, describe(f), f.class_code, maker.classes[0],
                      maker.classes[1]);
  const std::string refusal = pci_refusal(kernel, f);
  if (!refusal.empty()) fail<Unsupported>("{}={}: {}", maker.variable, f.address, refusal);
  return f;
}

}  // namespace tuff::devices
