#include "devices/registry.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "devices/amd/amd.h"
#include "devices/cpu/cpu.h"
#include "devices/cuda/cuda.h"
#include "devices/default_kinds.h"
#include "devices/disk/disk.h"
#include "devices/emulator.h"
#include "devices/null/null.h"
#include "devices/nv/nv.h"
#ifdef TUFF_HAS_OPENCL
#include "devices/opencl/opencl.h"
#endif
#include "devices/shuffle/shuffle.h"
#ifdef TUFF_HAS_VULKAN
#include "devices/vulkan/vulkan.h"
#endif

namespace tuff::devices {
namespace {

// What an emulated machine reports on threads of its own, until a device of it asks.
class FindingInbox {
 public:
  void add(hcq::MachineFinding finding) {
    std::lock_guard lock(mutex_);
    found_.push_back(std::move(finding));
    any_.store(true, std::memory_order_release);
  }
  // Cheap where there is nothing.
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

emu_api::ReportFinding reports_to(std::shared_ptr<FindingInbox> inbox) {
  return [inbox = std::move(inbox)](const emu_api::MachineFinding& f) {
    inbox->add({f.kind, f.gpu, f.queue, f.address, f.text});
  };
}

// The one place where machines meet the drivers that they emulate.
std::unique_ptr<AmdIface> emulated_amd() {
  const auto inbox = std::make_shared<FindingInbox>();
  auto iface = std::make_unique<AmdIface>();
  emu_api::Failure failure;
  iface->kernel = emulator().make_amd(env_text(Env::TUFF_MOCK), reports_to(inbox),
                                       emulated_profile(), failure);
  throw_failure(failure);
  iface->emulated = true;
  iface->take_findings = [inbox] { return inbox->take(); };
  return iface;
}

std::vector<Candidate> probe_amd() {
  try {
    return amd_probe(amd_iface(emulated_amd));
  } catch (const Unsupported& e) {  // no library that emulates
    return {{.name = "AMD", .reason = e.what()}};
  }
}

std::unique_ptr<hcq::Device> open_amd(const std::string& selector) {
  return amd_open(amd_iface(emulated_amd), selector);
}

std::unique_ptr<NvIface> emulated_nv() {
  const auto inbox = std::make_shared<FindingInbox>();
  auto iface = std::make_unique<NvIface>();
  emu_api::Failure failure;
  emu_api::NvMachine machine = emulator().make_nv(env_text(Env::TUFF_MOCK), reports_to(inbox),
                                                  emulated_profile(), failure);
  throw_failure(failure);
  iface->kernel = std::move(machine.kernel);
  iface->pci = !machine.pci_address.empty();
  iface->pci_address = machine.pci_address;
  iface->emulated = true;
  iface->take_findings = [inbox] { return inbox->take(); };
  iface->assemble = [](const std::string& ptx, uint32_t sm) {
    emu_api::Failure refused;
    std::vector<uint8_t> object = emulator().assemble_ptx(ptx, sm, refused);
    throw_failure(refused);
    return object;
  };
  return iface;
}

std::vector<Candidate> probe_nv() {
  try {
    return nv_probe(nv_iface(emulated_nv));
  } catch (const Error& e) {  // no library that emulates
    return {{.name = "NV", .reason = e.what()}};
  }
}

std::unique_ptr<hcq::Device> open_nv(const std::string& selector) {
  return nv_open(nv_iface(emulated_nv), selector);
}

constexpr DeviceKind kKinds[] = {
#ifdef TUFF_HAS_VULKAN
    {"VULKAN", vulkan_probe, vulkan_open},
#endif
    {"CPU", cpu_probe, cpu_open},
    {"AMD", probe_amd, open_amd},
    {"CUDA", cuda_probe, cuda_open},
    {"NV", probe_nv, open_nv},
#ifdef TUFF_HAS_OPENCL
    {"CL", opencl_probe, opencl_open},
#endif
    {"DISK", disk_probe, disk_open},
    {"NULL", null_probe, null_open},
    {"SHUFFLE", shuffle_probe, shuffle_open},
};

}  // namespace

std::span<const DeviceKind> device_kinds() { return kKinds; }

bool may_be_default(const DeviceKind& kind) {
  return kind.open != cuda_open && kind.open != open_nv;
}

}  // namespace tuff::devices
