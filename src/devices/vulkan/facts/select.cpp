#include "devices/vulkan/facts/select.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/os.h"
#include "devices/selector.h"

namespace tuff::devices::vulkan {
namespace {

std::string group_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return "?";
  const group* g = ::getgrgid(info.st_gid);
  return g ? g->gr_name : std::to_string(info.st_gid);
}

}  // namespace

std::vector<Facts> list_devices(const Instance& instance) {
  VkResult result = VK_SUCCESS;
  const auto handles = enumerate<VkPhysicalDevice>([&](uint32_t* count, auto* all) {
    result = instance.api.vkEnumeratePhysicalDevices(instance.handle, count, all);
  });
  if (result != VK_SUCCESS && result != VK_INCOMPLETE)
    fail<Unsupported>("vkEnumeratePhysicalDevices returned {}", result_name(result));
  std::vector<Facts> devices;
  for (VkPhysicalDevice handle : handles) devices.push_back(gather_facts(instance, handle));
  std::stable_sort(devices.begin(), devices.end(), [](const Facts& a, const Facts& b) {
    if (a.usable() != b.usable()) return a.usable();
    if (a.rank() != b.rank()) return a.rank() > b.rank();
    if (a.caps_offered != b.caps_offered) return a.caps_offered > b.caps_offered;
    return a.device_uuid < b.device_uuid;
  });
  return devices;
}

size_t select_device(const std::vector<Facts>& devices, const std::string& selector) {
  if (devices.empty()) {
    std::string hint = forbidden_nodes();
    fail<Unsupported>("no Vulkan device{}",
                      hint.empty() ? ": install a Vulkan driver" : ": " + hint);
  }
  std::vector<Choice> choices;
  for (const Facts& f : devices)
    choices.push_back({f.properties.deviceName, f.uuid_text(), f.properties.deviceName});
  const size_t index = choose("VULKAN", choices, selector);
  const Facts& f = devices[index];
  if (!f.usable())
    fail<Unsupported>("VULKAN:{} ({}) cannot be used: {}", index, f.properties.deviceName,
                      f.missing);
  return index;
}

std::string forbidden_nodes(const std::string& directory, bool (*may_open)(const char* path)) {
  if (!os::is_directory(directory)) return {};
  std::map<std::string, std::string> by_group;
  for (const std::string& name : os::list_directory(directory)) {
    std::string path = directory + "/" + name;
    if (!name.starts_with("renderD") || may_open(path.c_str())) continue;
    std::string& paths = by_group[group_of(path)];
    paths += (paths.empty() ? "" : ", ") + path;
  }
  std::vector<std::string> hints;
  for (const auto& [group, paths] : by_group)
    hints.push_back(fmt::format(
        "{} may not be opened by this user: join the group \"{}\" (sudo usermod -aG {} $USER)",
        paths, group, group));
  return fmt::format("{}", fmt::join(hints, "; "));
}

std::string forbidden_nodes() {
  return forbidden_nodes("/dev/dri",
                         [](const char* path) { return ::access(path, R_OK | W_OK) == 0; });
}

}  // namespace tuff::devices::vulkan
