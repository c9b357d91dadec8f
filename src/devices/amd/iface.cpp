// Which machine AMD_IFACE names, and the findings of an emulated one.
#include <atomic>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "devices/amd/amd.h"
#include "emu/amd/mock.h"

namespace tuff::devices {
namespace {

// What the machine reports on its own threads, until a device asks.
class Findings {
 public:
  void add(const emu::amd::Finding& f) {
    std::lock_guard lock(mutex_);
    found_.push_back({emu::amd::name(f.kind), f.gpu, f.queue, f.address, to_text(f)});
    any_.store(true, std::memory_order_release);
  }
  std::vector<hcq::MachineFinding> take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_release);
    return std::exchange(found_, {});
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<hcq::MachineFinding> found_;
};

std::unique_ptr<AmdIface> make_iface(const std::string& name) {
  auto iface = std::make_unique<AmdIface>();
  if (name == "KFD") {
    iface->kernel = std::shared_ptr<os::Kernel>(std::shared_ptr<void>(), &os::system_kernel());
    return iface;
  }
  if (name != "MOCK") fail<InvalidArgument>("AMD_IFACE={}: there are KFD and MOCK", name);
  emu::amd::MockOptions options = emu::amd::parse_options(env_text(Env::TUFF_MOCK));
  const auto findings = std::make_shared<Findings>();
  options.report = [findings](const emu::amd::Finding& f) { findings->add(f); };
  iface->kernel = emu::amd::make_mock(options);
  iface->emulated = true;
  iface->take_findings = [findings] { return findings->take(); };
  return iface;
}

// One machine for a process and setting. Leaked on purpose: devices may be closed by static
// destructors, and the kernel's side of a process ends with the process.
AmdIface& chosen_iface() {
  struct Ifaces {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<AmdIface>> by_setting;
  };
  static Ifaces& all = *std::make_unique<Ifaces>().release();
  std::lock_guard lock(all.mutex);
  const std::string name = env_text(Env::AMD_IFACE);
  auto& iface = all.by_setting[name == "MOCK" ? "MOCK " + env_text(Env::TUFF_MOCK) : name];
  if (!iface) iface = make_iface(name);
  return *iface;
}

}  // namespace

std::vector<Candidate> amd_probe() {
  try {
    return amd_probe(chosen_iface());
  } catch (const InvalidArgument& e) {
    Candidate none;
    none.name = "AMD";
    none.reason = e.what();
    return {none};
  }
}

std::unique_ptr<hcq::Device> amd_open(const std::string& selector) {
  return amd_open(chosen_iface(), selector);
}

}  // namespace tuff::devices
