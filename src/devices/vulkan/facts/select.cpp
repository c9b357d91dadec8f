#include "devices/vulkan/facts/select.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/check.h"
#include "base/os.h"

namespace tuff::devices::vulkan {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string listing(const std::vector<Facts>& devices) {
  if (devices.empty()) return "there is no Vulkan device";
  std::string text = "there is";
  for (size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{} {} \"{}\" uuid={}", i ? "," : "", i, devices[i].properties.deviceName,
                        devices[i].uuid_text());
  }
  return text;
}

template <class Match>
size_t first_match(const std::vector<Facts>& devices, const std::string& selector, Match&& match) {
  auto it = std::find_if(devices.begin(), devices.end(), match);
  if (it == devices.end())
    fail<InvalidArgument>("VULKAN:{} matches no device; {}", selector, listing(devices));
  return static_cast<size_t>(it - devices.begin());
}

size_t find_by_selector(const std::vector<Facts>& devices, const std::string& selector) {
  if (selector.starts_with("uuid=")) {
    std::string wanted = lower(selector.substr(5));
    std::erase(wanted, '-');
    if (wanted.empty())
      fail<InvalidArgument>("VULKAN:uuid= needs hex digits; {}", listing(devices));
    return first_match(devices, selector,
                       [&](const Facts& f) { return f.uuid_text().starts_with(wanted); });
  }
  if (selector.starts_with("name=")) {
    std::string wanted = lower(selector.substr(5));
    if (wanted.empty())
      fail<InvalidArgument>("VULKAN:name= needs a part of a name; {}", listing(devices));
    return first_match(devices, selector, [&](const Facts& f) {
      return lower(f.properties.deviceName).find(wanted) != std::string::npos;
    });
  }
  size_t index = 0;
  const char* end = selector.data() + selector.size();
  auto [stop, error] = std::from_chars(selector.data(), end, index);
  if (error != std::errc() || stop != end) {
    fail<InvalidArgument>("VULKAN:{} is no selector: give an index, uuid=<hex> or name=<part>; {}",
                          selector, listing(devices));
  }
  if (index >= devices.size())
    fail<InvalidArgument>("VULKAN:{} does not exist; {}", selector, listing(devices));
  return index;
}

std::string group_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return "?";
  const group* g = ::getgrgid(info.st_gid);
  return g ? g->gr_name : std::to_string(info.st_gid);
}

}  // namespace

std::vector<Facts> list_devices(const Instance& instance) {
  uint32_t count = 0;
  instance.api.vkEnumeratePhysicalDevices(instance.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  VkResult result =
      instance.api.vkEnumeratePhysicalDevices(instance.handle, &count, handles.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
    fail<Unsupported>("vkEnumeratePhysicalDevices returned {}", result_name(result));
  }
  handles.resize(count);
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
  size_t index = selector.empty() ? 0 : find_by_selector(devices, selector);
  const Facts& f = devices[index];
  if (!f.usable()) {
    fail<Unsupported>("VULKAN:{} ({}) cannot be used: {}", index, f.properties.deviceName,
                      f.missing);
  }
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
  std::string text;
  for (const auto& [group, paths] : by_group) {
    if (!text.empty()) text += "; ";
    text += fmt::format(
        "{} may not be opened by this user: join the group \"{}\" (sudo usermod -aG {} $USER)",
        paths, group, group);
  }
  return text;
}

std::string forbidden_nodes() {
  return forbidden_nodes("/dev/dri",
                         [](const char* path) { return ::access(path, R_OK | W_OK) == 0; });
}

}  // namespace tuff::devices::vulkan
