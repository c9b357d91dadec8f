#include "devices/amd/amd.h"

#include <map>

#include "base/env.h"
#include "devices/amd/amd_device.h"
#include "devices/amd/kfd/kfd_space.h"
#include "devices/amd/pci/named_gpu.h"
#include "devices/amd/pci/pci_space.h"
#include "devices/selector.h"

namespace tuff::devices {
namespace {

using namespace amd;

constexpr const char *kKind = "AMD", *kKfd = "KFD";

std::string why_unsupported(const GpuNode& node) {
  std::vector<std::string_view> known;
  for (const Generation& g : generations()) known.push_back(g.name);
  return fmt::format("{} is not supported; supported are {}", node.arch(), fmt::join(known, ", "));
}

// Errors of the driver name the device, as candidates do.
std::string without_kind(const std::string& text) {
  const std::string prefix = std::string(kKind) + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Every GPU that the kernel lists, or why there is none.
std::vector<Candidate> candidates(os::Kernel& kernel, bool emulated,
                                  const std::vector<GpuNode>& nodes) {
  const std::string why = why_no_kfd(kernel);
  if (!why.empty()) return {{.name = kKind, .reason = without_kind(why)}};
  if (nodes.empty()) return {{.name = kKind, .reason = "no GPU is listed by /dev/kfd"}};
  std::vector<Candidate> found;
  for (const GpuNode& node : nodes) {
    const std::string name = fmt::format("{}:{}", kKind, found.size());
    const bool usable = node.generation() != nullptr;
    // Never the default: emulated ones are slow, and on hardware it is not proven yet.
    found.push_back({.name = name,
                     .usable = usable,
                     .reason = usable ? "" : why_unsupported(node),
                     .info = describe(node, kKfd, name, emulated),
                     .rank = 0});
  }
  return found;
}

std::shared_ptr<Process> process_of(AmdIface& iface) {
  std::lock_guard lock(iface.mutex);
  if (!iface.process) iface.process = std::make_shared<Process>(iface.kernel);
  return iface.process;
}

// Whether the GPU that the user named could be taken. Nothing is touched to tell that.
Candidate candidate_by_pci(AmdIface& iface) {
  const PciFunction gpu = named_gpu(*iface.kernel, iface.pci_address);
  Candidate c{.name = fmt::format("{}:0", kKind), .usable = true};
  c.info.name = c.name;
  c.info.description = tuff::devices::describe(gpu) + (iface.emulated ? ", emulated" : "");
  c.info.driver = std::string(kPciDriver) + (iface.emulated ? " (emulated)" : "");
  c.info.hardware = !iface.emulated;
  c.info.features = {{"address", gpu.address},
                     {"emulated", iface.emulated ? "yes" : "no"},
                     {"proven_on_hardware", "simulated, never run"}};
  return c;
}

std::unique_ptr<hcq::Device> open_by_pci(AmdIface& iface, const std::string& selector) {
  const Candidate c = candidate_by_pci(iface);
  choose(kKind, std::vector<Choice>{{c.info.description, "", c.info.description}}, selector);
  const PciFunction gpu = named_gpu(*iface.kernel, iface.pci_address);
  auto space = std::make_unique<PciSpace>(std::make_unique<PciGpu>(
      iface.kernel, gpu, uint64_t(env_int(Env::TUFF_TIMEOUT_MS))));
  hcq::DeviceInfo info = amd::describe(space->facts(), kPciDriver, c.name, iface.emulated);
  info.features.emplace_back("address", gpu.address);
  info.features.emplace_back("proven_on_hardware", "simulated, never run");
  return std::make_unique<AmdDevice>(iface, std::move(space), std::move(info));
}

std::unique_ptr<AmdIface> make_iface(const std::string& name, EmulatedAmd emulated) {
  if (name == "MOCK") return emulated();
  auto iface = std::make_unique<AmdIface>();
  iface->pci = name == "PCI";
  if (iface->pci) iface->pci_address = env_text(Env::AMD_PCI);
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
  const std::string setting = name == "MOCK"  ? env_text(Env::TUFF_MOCK)
                              : name == "PCI" ? env_text(Env::AMD_PCI)
                                              : "";
  auto& iface = all.by_setting[name + " " + setting];
  if (!iface) iface = make_iface(name, emulated);
  return *iface;
}

std::vector<Candidate> amd_probe(AmdIface& iface) {
  try {
    if (iface.pci) return {candidate_by_pci(iface)};
    return candidates(*iface.kernel, iface.emulated, read_topology(*iface.kernel));
  } catch (const Error& e) {
    return {{.name = kKind, .reason = without_kind(e.what())}};
  }
}

std::unique_ptr<hcq::Device> amd_open(AmdIface& iface, const std::string& selector) {
  if (iface.pci) return open_by_pci(iface, selector);
  const std::vector<GpuNode> nodes = read_topology(*iface.kernel);
  const std::vector<Candidate> all = candidates(*iface.kernel, iface.emulated, nodes);
  std::vector<Choice> choices;
  for (const Candidate& c : all)
    choices.push_back({c.info.description, c.info.uuid, c.info.description});
  const size_t i = all[0].name == kKind ? 0 : choose(kKind, choices, selector);
  if (!all[i].usable) fail<Unsupported>("{}: {}", all[i].name, all[i].reason);
  return std::make_unique<AmdDevice>(iface, std::make_unique<KfdSpace>(process_of(iface), nodes[i]),
                                     all[i].info);
}

}  // namespace tuff::devices
