#include "devices/amd/amd.h"

#include <algorithm>
#include <charconv>

#include "devices/amd/amd_device.h"

namespace tuff::devices {
namespace {

using namespace amd;

constexpr const char* kKind = "AMD";

std::string why_unsupported(const GpuNode& node) {
  std::string known;
  for (const Generation& g : generations())
    known += (known.empty() ? "" : ", ") + std::string(g.name);
  return fmt::format("{} is not supported; supported are {}", node.arch(), known);
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
  if (!why.empty() || nodes.empty()) {
    Candidate none;
    none.name = kKind;
    none.reason = why.empty() ? "no GPU is listed by /dev/kfd" : without_kind(why);
    return {none};
  }
  std::vector<Candidate> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Candidate& c = found.emplace_back();
    c.name = fmt::format("{}:{}", kKind, i);
    c.usable = nodes[i].generation() != nullptr;
    if (!c.usable) c.reason = why_unsupported(nodes[i]);
    c.info = describe(nodes[i], c.name, emulated);
    c.rank = 0;  // never the default: emulated ones are slow, and on hardware it is not proven yet
  }
  return found;
}

size_t chosen(const std::vector<Candidate>& all, const std::string& selector) {
  if (selector.empty()) return 0;
  const std::string wanted = fmt::format("{}:{}", kKind, selector);
  std::string known;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == wanted || selector == "uuid=" + all[i].info.uuid) return i;
    known += (known.empty() ? "" : ", ") + all[i].name;
  }
  fail<InvalidArgument>("{}: there are {}", wanted, known);
}

std::shared_ptr<Process> process_of(AmdIface& iface) {
  std::lock_guard lock(iface.mutex);
  if (!iface.process) iface.process = std::make_shared<Process>(iface.kernel);
  return iface.process;
}

}  // namespace

std::vector<Candidate> amd_probe(AmdIface& iface) {
  try {
    return candidates(*iface.kernel, iface.emulated, read_topology(*iface.kernel));
  } catch (const Error& e) {
    Candidate none;
    none.name = kKind;
    none.reason = e.what();
    return {none};
  }
}

std::unique_ptr<hcq::Device> amd_open(AmdIface& iface, const std::string& selector) {
  const std::vector<GpuNode> nodes = read_topology(*iface.kernel);
  const std::vector<Candidate> all = candidates(*iface.kernel, iface.emulated, nodes);
  const size_t i = nodes.empty() || all[0].name == kKind ? 0 : chosen(all, selector);
  if (!all[i].usable) fail<Unsupported>("{}: {}", all[i].name, all[i].reason);
  return std::make_unique<AmdDevice>(iface, process_of(iface), nodes[i], all[i].name);
}

}  // namespace tuff::devices
