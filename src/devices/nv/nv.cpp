#include "devices/nv/nv.h"

#include <map>

#include "base/env.h"
#include "devices/nv/load/driver_assembler.h"
#include "devices/nv/nv_device.h"
#include "devices/nv/pci/gsp_space.h"
#include "devices/nv/pci/named_gpu.h"
#include "devices/nv/rm/uvm_space.h"
#include "devices/selector.h"

namespace tuff::devices {
namespace {

using namespace nv;

constexpr const char* kNv = "NV";

// Errors of the driver name the device, as candidates do.
std::string without_name(const std::string& text) {
  const std::string prefix = std::string(kNv) + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::shared_ptr<Client> client_of(NvIface& iface) {
  std::lock_guard lock(iface.mutex);
  auto client = iface.client.lock();
  if (!client) iface.client = client = std::make_shared<Client>(iface.kernel);
  return client;
}

Candidate candidate_of(const std::shared_ptr<Client>& client, const nvrm::CardInfo& card,
                       const std::string& name, bool emulated) {
  try {
    const Gpu gpu(client, card);
    const GpuFacts& f = gpu.facts();
    // Never the default: emulated ones are slow, and on hardware it has never run.
    return {name, f.missing.empty(), f.missing,
            describe(f, kKernelDriver, client->version(), name, emulated), 0};
  } catch (const Error& e) {
    return {.name = name, .reason = without_name(e.what())};
  }
}

std::vector<Candidate> candidates(NvIface& iface, const std::shared_ptr<Client>& client) {
  std::vector<Candidate> found;
  for (const nvrm::CardInfo& card : client->cards())
    found.push_back(candidate_of(client, card, fmt::format("{}:{}", kNv, found.size()),
                                 iface.emulated));
  if (found.empty()) return {{.name = kNv, .reason = "no GPU is listed by /dev/nvidiactl"}};
  return found;
}

// Whether the GPU that the user named could be taken. Nothing is touched to tell that.
Candidate candidate_by_pci(NvIface& iface) {
  const PciFunction gpu = named_gpu(*iface.kernel, iface.pci_address);
  Candidate c{.name = fmt::format("{}:0", kNv), .usable = true};
  c.info.name = c.name;
  c.info.description = describe(gpu) + (iface.emulated ? ", emulated" : "");
  c.info.driver = std::string(kPciDriver) + (iface.emulated ? " (emulated)" : "");
  c.info.hardware = !iface.emulated;
  c.info.features = {{"address", gpu.address},
                     {"emulated", iface.emulated ? "yes" : "no"},
                     {"proven_on_hardware", "simulated, never run"}};
  return c;
}

// Channels and rings are the parent's, who goes on with them.
std::unique_ptr<hcq::Device> closed_in_children(std::unique_ptr<NvDevice> device) {
  hcq::close_in_children(*device);
  return device;
}

std::unique_ptr<hcq::Device> open_by_pci(NvIface& iface, const std::string& selector) {
  const Candidate c = candidate_by_pci(iface);
  choose(kNv, std::vector<Choice>{{c.info.description, "", c.info.description}}, selector);
  auto gpu = std::make_unique<PciGpu>(iface.kernel, named_gpu(*iface.kernel, iface.pci_address),
                                      uint64_t(env_int(Env::TUFF_TIMEOUT_MS)));
  return closed_in_children(
      std::make_unique<NvDevice>(iface, std::make_unique<GspSpace>(std::move(gpu)), c.name));
}

std::unique_ptr<NvIface> make_nv_iface(const std::string& name, EmulatedNv emulated) {
  if (name == "MOCK") return emulated();
  auto iface = std::make_unique<NvIface>();
  iface->pci = name == "PCI";
  if (iface->pci) iface->pci_address = env_text(Env::NV_PCI);
  iface->kernel = std::shared_ptr<os::Kernel>(std::shared_ptr<void>(), &os::system_kernel());
  iface->assemble = [](const std::string& ptx, uint32_t sm) { return assemble_by_driver(ptx, sm); };
  return iface;
}

}  // namespace

// Leaked on purpose: devices may be closed by static destructors.
NvIface& nv_iface(EmulatedNv emulated) {
  struct Ifaces {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<NvIface>> by_setting;
  };
  static Ifaces& all = *std::make_unique<Ifaces>().release();
  std::lock_guard lock(all.mutex);
  const std::string name = env_text(Env::NV_IFACE);
  const std::string setting = name == "MOCK"  ? env_text(Env::TUFF_MOCK)
                              : name == "PCI" ? env_text(Env::NV_PCI)
                                              : "";
  auto& iface = all.by_setting[name + " " + setting];
  if (!iface) iface = make_nv_iface(name, emulated);
  return *iface;
}

std::vector<Candidate> nv_probe(NvIface& iface) {
  try {
    if (iface.pci) return {candidate_by_pci(iface)};
    return candidates(iface, client_of(iface));
  } catch (const Error& e) {
    return {{.name = kNv, .reason = without_name(e.what())}};
  }
}

std::unique_ptr<hcq::Device> nv_open(NvIface& iface, const std::string& selector) {
  if (iface.pci) return open_by_pci(iface, selector);
  const std::shared_ptr<Client> client = client_of(iface);
  const std::vector<nvrm::CardInfo> cards = client->cards();
  const std::vector<Candidate> all = candidates(iface, client);
  std::vector<Choice> choices;
  for (const Candidate& c : all)
    choices.push_back({c.info.description, c.info.uuid, c.info.description});
  const size_t i = all[0].name == kNv ? 0 : choose(kNv, choices, selector);
  if (!all[i].usable) fail<Unsupported>("{}: {}", all[i].name, all[i].reason);
  return closed_in_children(std::make_unique<NvDevice>(
      iface, std::make_unique<UvmSpace>(client, cards[i]), all[i].name));
}

}  // namespace tuff::devices
