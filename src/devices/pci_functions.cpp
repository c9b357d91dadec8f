#include "devices/pci_functions.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace tuff::devices {
namespace {

const std::string kPciFolder = "/sys/bus/pci/devices";
const std::string kGroupsFolder = "/sys/kernel/iommu_groups";
constexpr const char* kVfioDriver = "vfio-pci";

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

class FunctionFiles {
 public:
  FunctionFiles(os::Kernel& kernel, const std::string& address)
      : kernel_(kernel), folder_(kPciFolder + "/" + address + "/") {}

  std::string text(const char* name) const {
    std::string text;
    const int result = kernel_.read_text(folder_ + name, text);
    if (result < 0)
      fail<Unsupported>("{}{} cannot be read: {}", folder_, name, std::strerror(-result));
    return text;
  }
  uint64_t number(const char* name, uint64_t most) const {
    const std::string text = trimmed(this->text(name));
    const auto n = hexadecimal(text);
    if (!n || *n > most)
      fail<Unsupported>("{}{} has '{:.40}', not a hexadecimal number of at most {:#x}", folder_,
                        name, text, most);
    return *n;
  }
  // The line NAME=value; empty where there is none.
  std::string event_value(const std::string& name) const {
    const std::string all = "\n" + text("uevent"), key = "\n" + name + "=";
    const size_t at = all.find(key);
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size();
    return all.substr(begin, all.find('\n', begin) - begin);
  }
  // Lines of first and last address and flags, the BARs' first.
  void read_bars(PciFunction& f) const {
    const std::string all = text("resource");
    size_t begin = 0;
    for (size_t bar = 0; bar < kPciBars; ++bar) {
      const size_t end = all.find('\n', begin);
      const auto range = range_of(all.substr(begin, end - begin));
      if (end == std::string::npos || !range)
        fail<Unsupported>("{}resource is no table of {} address ranges", folder_, kPciBars);
      std::tie(f.bar_address[bar], f.bar_bytes[bar]) = *range;
      begin = end + 1;
    }
  }

 private:
  static std::optional<uint64_t> hexadecimal(std::string_view text) {
    if (!text.starts_with("0x")) return std::nullopt;
    text.remove_prefix(2);
    uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return n;
  }
  // Address and size; zeros where there is none.
  static std::optional<std::pair<uint64_t, uint64_t>> range_of(const std::string& line) {
    const size_t space = line.find(' '), second = line.find(' ', space + 1);
    if (space == std::string::npos || second == std::string::npos) return std::nullopt;
    const std::string_view text = line;
    const auto first = hexadecimal(text.substr(0, space));
    const auto last = hexadecimal(text.substr(space + 1, second - space - 1));
    if (!first || !last || *last < *first || *last - *first == ~0ull) return std::nullopt;
    return std::pair{*first, *last == 0 ? 0 : *last - *first + 1};
  }

  os::Kernel& kernel_;
  const std::string folder_;
};

// Domain, bus, device (5 bits), function (3).
bool is_address(const std::string& text) {
  constexpr std::string_view form = "hhhh:hh:bh.o", digits = "0123456789abcdef";
  if (text.size() != form.size()) return false;
  for (size_t i = 0; i < form.size(); ++i) {
    const size_t most = form[i] == 'h' ? 16 : form[i] == 'o' ? 8 : form[i] == 'b' ? 2 : 0;
    const bool fits = most ? digits.find(text[i]) < most : text[i] == form[i];
    if (!fits) return false;
  }
  return true;
}

std::vector<std::string> names_in(os::Kernel& kernel, const std::string& folder) {
  std::vector<std::string> names;
  if (kernel.list_directory(folder, names) < 0) names.clear();
  return names;
}

std::string group_of(os::Kernel& kernel, const std::string& address) {
  for (const std::string& group : names_in(kernel, kGroupsFolder)) {
    const auto members = names_in(kernel, kGroupsFolder + "/" + group + "/devices");
    if (std::find(members.begin(), members.end(), address) != members.end()) return group;
  }
  return "";
}

std::string how_to_bind(const std::string& address) {
  return fmt::format(
      "give it to {} first (as root: driverctl set-override {} {}, or see docs/design/nv-pci.md)",
      kVfioDriver, address, kVfioDriver);
}

// Bridges have the driver pcieport, which touches no memory of the others.
bool may_stay(const std::string& driver) {
  return driver.empty() || driver == kVfioDriver || driver == "pcieport" || driver == "pci-stub";
}

std::string refusal_of_group(os::Kernel& kernel, const PciFunction& f) {
  const std::string folder = kGroupsFolder + "/" + f.iommu_group + "/devices";
  for (const std::string& other : names_in(kernel, folder)) {
    if (other == f.address) continue;
    const std::string driver = FunctionFiles(kernel, other).event_value("DRIVER");
    if (!may_stay(driver))
      return fmt::format("the driver {} holds {}, which shares its IOMMU group {}: {}", driver,
                         other, f.iommu_group, how_to_bind(other));
  }
  return "";
}

}  // namespace

std::string describe(const PciFunction& f) {
  return fmt::format("{} ({:04x}:{:04x}, {})", f.address, f.vendor, f.device,
                     f.driver.empty() ? "no driver" : "driver " + f.driver);
}

std::string pci_address(const std::string& text, const char* variable) {
  std::string address = text.size() == 7 ? "0000:" + text : text;
  for (char& c : address)
    if (c >= 'A' && c <= 'F') c = char(c - 'A' + 'a');
  if (!is_address(address))
    fail<InvalidArgument>(
        "{}='{:.60}' is not the address of a PCI function, such as 0000:01:00.0 (lspci -D lists "
        "them)",
        variable, text);
  return address;
}

PciFunction pci_function(os::Kernel& kernel, const std::string& address) {
  const FunctionFiles files(kernel, address);
  PciFunction f;
  f.address = address;
  f.vendor = uint16_t(files.number("vendor", 0xffff));
  f.device = uint16_t(files.number("device", 0xffff));
  f.class_code = uint32_t(files.number("class", 0xffffff));
  f.driver = files.event_value("DRIVER");
  files.read_bars(f);
  f.iommu_group = group_of(kernel, address);
  return f;
}

std::vector<PciFunction> pci_functions(os::Kernel& kernel, uint16_t vendor) {
  std::vector<PciFunction> found;
  for (const std::string& address : names_in(kernel, kPciFolder)) {
    try {
      if (FunctionFiles(kernel, address).number("vendor", 0xffff) == vendor)
        found.push_back(pci_function(kernel, address));
    } catch (const Unsupported&) {  // told when it is asked for by its address
    }
  }
  return found;
}

std::string pci_refusal(os::Kernel& kernel, const PciFunction& f) try {
  if (f.driver.empty()) return "no driver is bound to it: " + how_to_bind(f.address);
  if (f.driver != kVfioDriver)
    return fmt::format("the driver {} holds it: {}", f.driver, how_to_bind(f.address));
  if (f.iommu_group.empty())
    return "no IOMMU translates its memory accesses: switch it on in the firmware's setup (VT-d, "
           "AMD-Vi) and on the kernel's command line (intel_iommu=on)";
  return refusal_of_group(kernel, f);
} catch (const Unsupported& e) {
  return fmt::format("its IOMMU group {} is not known: {}", f.iommu_group, e.what());
}

}  // namespace tuff::devices
