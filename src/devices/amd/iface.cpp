// Which machine AMD_IFACE names.
#include <map>

#include "base/env.h"
#include "devices/amd/amd.h"

namespace tuff::devices {
namespace {

std::unique_ptr<AmdIface> make_iface(const std::string& name, EmulatedAmd emulated) {
  if (name == "MOCK") return emulated();
  auto iface = std::make_unique<AmdIface>();
  iface->kernel = std::shared_ptr<os::Kernel>(std::shared_ptr<void>(), &os::system_kernel());
  return iface;
}

}  // namespace

// Leaked on purpose: devices may be closed by static destructors, and the kernel's side of a
// process ends with the process.
AmdIface& amd_iface(EmulatedAmd emulated) {
  struct Ifaces {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<AmdIface>> by_setting;
  };
  static Ifaces& all = *std::make_unique<Ifaces>().release();
  std::lock_guard lock(all.mutex);
  const std::string name = env_text(Env::AMD_IFACE);
  auto& iface = all.by_setting[name == "MOCK" ? "MOCK " + env_text(Env::TUFF_MOCK) : name];
  if (!iface) iface = make_iface(name, emulated);
  return *iface;
}

}  // namespace tuff::devices
