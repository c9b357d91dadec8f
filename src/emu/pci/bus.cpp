#include "emu/pci/bus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/vfio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace tuff::emu::pci {
namespace {

constexpr uint64_t kHostPage = 4096;
constexpr uint16_t kMemorySpace = 1u << 1, kBusMaster = 1u << 2;
constexpr uint64_t kConfigBytes = 4096;
const std::string kDevices = "/sys/bus/pci/devices/", kGroups = "/sys/kernel/iommu_groups/",
                  kFirmwares[] = {"/lib/firmware/nvidia/", "/lib/firmware/amdgpu"};
// x86's IOMMUs leave out the window of interrupts; the width is that of VT-d with four levels.
constexpr vfio_iova_range kRanges[] = {{0, 0xfedfffff}, {0xfef00000, (1ull << 48) - 1}};

// Where VFIO puts a region in the file of a device (vfio_pci_core.h, VFIO_PCI_OFFSET_SHIFT).
constexpr uint32_t kRegionShift = 40;
constexpr uint64_t kRegionBytes = 1ull << kRegionShift;

bool is_own(const std::string& path) {
  for (const std::string& folder : kFirmwares)
    if (path.starts_with(folder) || path.starts_with("/usr" + folder)) return true;
  return path.starts_with(kDevices) || path.starts_with(kGroups);
}

std::string resource_lines(const Slot& slot) {
  std::string text;
  uint64_t at = 1ull << 33;
  for (const uint64_t bytes : slot.bar_bytes) {
    text += bytes ? fmt::format("0x{:016x} 0x{:016x} 0x{:016x}\n", at, at + bytes - 1, 0x140204)
                  : "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    at += std::max<uint64_t>(bytes, 1ull << 25);
  }
  return text;
}

}  // namespace

intptr_t Function::map(size_t, uint64_t, size_t, int) { return -EINVAL; }

// ---- functions

void Bus::add(const Slot& slot) {
  std::lock_guard lock(mutex_);
  slots_[slot.address] = slot;
  const std::string folder = kDevices + slot.address + "/";
  files[folder + "vendor"] = fmt::format("0x{:04x}\n", slot.vendor);
  files[folder + "device"] = fmt::format("0x{:04x}\n", slot.device);
  files[folder + "class"] = fmt::format("0x{:06x}\n", slot.class_code);
  files[folder + "resource"] = resource_lines(slot);
  files[folder + "uevent"] =
      (slot.driver.empty() ? "" : "DRIVER=" + slot.driver + "\n") +
      fmt::format("PCI_CLASS={:X}\nPCI_SLOT_NAME={}\n", slot.class_code, slot.address);
  if (!slot.iommu_group.empty())
    files[kGroups + slot.iommu_group + "/devices/" + slot.address] = "";
}

class Bus::Memory final : public HostMemory {
 public:
  Memory(Bus& bus, std::string address) : bus_(bus), address_(std::move(address)) {}
  std::byte* at(uint64_t address, size_t size_bytes) override {
    std::lock_guard lock(bus_.mutex_);
    const State& state = bus_.states_[address_];
    const auto fault = [&](const char* why) -> std::byte* {
      bus_.reports_.add({FindingKind::PageFault, 0, 0, address,
                         fmt::format("{} reaches for {} bytes of host memory: {}", address_,
                                     size_bytes, why)});
      return nullptr;
    };
    if (!(state.command & kBusMaster)) return fault("it is no bus master");
    if (!state.container) return fault("nobody has opened it");
    const auto& all = state.container->mappings;
    auto m = all.upper_bound(address);
    if (m == all.begin()) return fault("the IOMMU has nothing there");
    --m;
    if (address - m->first >= m->second.size || m->second.size - (address - m->first) < size_bytes)
      return fault("the IOMMU has nothing there");
    if (!m->second.readable || !m->second.writable) return fault("it may not both read and write");
    return reinterpret_cast<std::byte*>(m->second.host + (address - m->first));
  }
  std::unique_lock<std::recursive_mutex> hold() override {
    return std::unique_lock(bus_.mutex_);
  }

 private:
  Bus& bus_;
  const std::string address_;
};

std::unique_ptr<HostMemory> Bus::host_memory(const std::string& address) {
  return std::make_unique<Memory>(*this, address);
}

Bus::~Bus() {
  for (const auto& [fd, open] : open_) ::close(fd);
}

Bus::Stats Bus::stats() const {
  std::lock_guard lock(mutex_);
  Stats s{calls_, open_.size(), 0};
  for (const auto& [fd, open] : open_)
    if (open.kind == Open::Kind::Container) s.mappings += open.container->mappings.size();
  return s;
}

std::vector<int> Bus::open_files() const {
  std::lock_guard lock(mutex_);
  std::vector<int> all;
  for (const auto& [fd, open] : open_) all.push_back(fd);
  return all;
}

// ---- sysfs

int Bus::read_text(const std::string& path, std::string& text) {
  if (!is_own(path)) return os::system_kernel().read_text(path, text);
  const auto found = files.find(path);
  if (found == files.end()) return -ENOENT;
  text = found->second;
  return 0;
}

int Bus::list_directory(const std::string& path, std::vector<std::string>& names) {
  const std::string folder = path + "/";
  if (!is_own(folder)) return os::system_kernel().list_directory(path, names);
  std::set<std::string> found;
  for (auto f = files.lower_bound(folder); f != files.end() && f->first.starts_with(folder); ++f)
    found.insert(f->first.substr(folder.size(), f->first.find('/', folder.size()) - folder.size()));
  if (found.empty()) return -ENOENT;
  names.assign(found.begin(), found.end());
  return 0;
}

// ---- VFIO's files

Bus::Open* Bus::find(int fd) {
  const auto found = open_.find(fd);
  return found == open_.end() ? nullptr : &found->second;
}

bool Bus::fails_now() { return ++calls_ == fail_at; }

int Bus::answer(const char* name, int error, const std::string& why) {
  reports_.add({FindingKind::BadCall, 0, 0, 0, fmt::format("{}: {} (error {})", name, why, error)});
  return -error;
}

// A file of the system holds the place of each emulated one, so that numbers never meet.
int Bus::keep(Open open) {
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  open_[fd] = std::move(open);
  return fd;
}

void Bus::tell_unmapped(const Container& c, uint64_t address, uint64_t size_bytes) {
  for (const auto& [name, state] : states_)
    if (state.container.get() == &c) slots_[name].function->unmapped(address, size_bytes);
}

bool Bus::is_viable(const std::string& group) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const auto& s) {
    const std::string& driver = s.second.driver;
    return s.second.iommu_group != group || driver.empty() || driver == "vfio-pci";
  });
}

int Bus::open(const std::string& path, int flags) {
  const std::string folder = "/dev/vfio/";
  if (!path.starts_with(folder)) return os::system_kernel().open(path, flags);
  std::lock_guard lock(mutex_);
  if (fails_now()) return -fail_with;
  const std::string name = path.substr(folder.size());
  if (name == "vfio")
    return keep({Open::Kind::Container, "", std::make_shared<Container>(), nullptr});
  const bool exists = std::any_of(slots_.begin(), slots_.end(), [&](const auto& s) {
    return s.second.iommu_group == name && s.second.driver == "vfio-pci";
  });
  if (!exists) return -ENOENT;
  for (const auto& [fd, open] : open_)
    if (open.kind == Open::Kind::Group && open.group == name) return -EBUSY;
  return keep({Open::Kind::Group, name, nullptr, nullptr});
}

// The kernel switches bus mastering off, whatever the driver did.
int Bus::close(int fd) {
  std::lock_guard lock(mutex_);
  Open* open = find(fd);
  if (!open) return os::system_kernel().close(fd);
  if (open->kind == Open::Kind::Container) tell_unmapped(*open->container, 0, ~uint64_t{0});
  if (open->kind == Open::Kind::Device) {
    open->slot->function->unmapped(0, ~uint64_t{0});
    states_[open->slot->address] = {};
  }
  if (open->kind == Open::Kind::Group && open->container) --open->container->groups;
  open_.erase(fd);
  ::close(fd);
  return 0;
}

int Bus::ioctl(int fd, unsigned long request, void* argument) {
  std::lock_guard lock(mutex_);
  Open* open = find(fd);
  if (!open) return os::system_kernel().ioctl(fd, request, argument);
  if (fails_now()) return -fail_with;
  switch (open->kind) {
    case Open::Kind::Container: return ask_container(*open->container, request, argument);
    case Open::Kind::Group: return ask_group(*open, request, argument);
    default: return ask_device(*open, request, argument);
  }
}

// ---- containers: the IOMMU

int Bus::ask_container(Container& c, unsigned long request, void* argument) {
  const auto number = reinterpret_cast<uintptr_t>(argument);
  switch (request) {
    case VFIO_GET_API_VERSION: return VFIO_API_VERSION;
    case VFIO_CHECK_EXTENSION: return number == VFIO_TYPE1_IOMMU || number == VFIO_TYPE1v2_IOMMU;
    case VFIO_SET_IOMMU:
      if (c.groups == 0 || c.translates || number != VFIO_TYPE1v2_IOMMU)
        return answer("VFIO_SET_IOMMU", EINVAL,
                      fmt::format("type {} with {} groups", number, c.groups));
      c.translates = true;
      return 0;
    default: break;
  }
  if (!c.translates) return answer("VFIO_IOMMU", EINVAL, "before VFIO_SET_IOMMU");
  switch (request) {
    case VFIO_IOMMU_GET_INFO: return tell_ranges(argument);
    case VFIO_IOMMU_MAP_DMA: return map_dma(c, argument);
    case VFIO_IOMMU_UNMAP_DMA: return unmap_dma(c, argument);
    default: return answer("ioctl", ENOTTY, fmt::format("request {:#x}", request));
  }
}

int Bus::tell_ranges(void* argument) {
  struct Answer {
    vfio_iommu_type1_info info;
    uint32_t pad;
    vfio_info_cap_header header;
    uint32_t count, reserved;
    vfio_iova_range ranges[std::size(kRanges)];
  } all{};
  auto* const info = static_cast<vfio_iommu_type1_info*>(argument);
  const size_t room = info->argsz;
  all.info.argsz = sizeof all;
  all.info.flags = VFIO_IOMMU_INFO_PGSIZES;
  all.info.iova_pgsizes = kHostPage;
  if (room >= sizeof all) {
    all.info.flags |= VFIO_IOMMU_INFO_CAPS;
    all.info.cap_offset = offsetof(Answer, header);
  }
  all.header = {VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, 1, 0};
  all.count = std::size(kRanges);
  std::copy(std::begin(kRanges), std::end(kRanges), all.ranges);
  std::memcpy(argument, &all, std::min(room, sizeof all));
  return 0;
}

int Bus::map_dma(Container& c, void* argument) {
  const auto& m = *static_cast<const vfio_iommu_type1_dma_map*>(argument);
  constexpr uint32_t known = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  const bool aligned = m.size && ((m.size | m.iova | m.vaddr) & (kHostPage - 1)) == 0;
  const bool in_range = std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& r) {
    return m.iova >= r.start && m.iova <= r.end && m.size - 1 <= r.end - m.iova;
  });
  if (m.argsz < sizeof m || !(m.flags & known) || (m.flags & ~known) || !aligned || !in_range)
    return answer("VFIO_IOMMU_MAP_DMA", EINVAL,
                  fmt::format("{} bytes at {:#x} for {:#x}, flags {:#x}", m.size, m.vaddr, m.iova,
                              m.flags));
  const auto after = c.mappings.lower_bound(m.iova);
  const bool meets_next = after != c.mappings.end() && after->first - m.iova < m.size;
  const bool meets_last = after != c.mappings.begin() &&
                          m.iova - std::prev(after)->first < std::prev(after)->second.size;
  if (meets_next || meets_last)
    return answer("VFIO_IOMMU_MAP_DMA", EEXIST, fmt::format("{:#x} is translated", m.iova));
  c.mappings[m.iova] = {m.size, m.vaddr, (m.flags & VFIO_DMA_MAP_FLAG_READ) != 0,
                        (m.flags & VFIO_DMA_MAP_FLAG_WRITE) != 0};
  return 0;
}

int Bus::unmap_dma(Container& c, void* argument) {
  auto& u = *static_cast<vfio_iommu_type1_dma_unmap*>(argument);
  const auto found = c.mappings.find(u.iova);
  if (u.argsz < sizeof u || u.flags || found == c.mappings.end() || found->second.size != u.size)
    return answer("VFIO_IOMMU_UNMAP_DMA", EINVAL,
                  fmt::format("{} bytes at {:#x} were not mapped so", u.size, u.iova));
  c.mappings.erase(found);
  tell_unmapped(c, u.iova, u.size);
  return 0;
}

// ---- groups

int Bus::ask_group(Open& group, unsigned long request, void* argument) {
  switch (request) {
    case VFIO_GROUP_GET_STATUS: {
      auto& status = *static_cast<vfio_group_status*>(argument);
      status.flags = (is_viable(group.group) ? VFIO_GROUP_FLAGS_VIABLE : 0) |
                     (group.container ? VFIO_GROUP_FLAGS_CONTAINER_SET : 0);
      return 0;
    }
    case VFIO_GROUP_SET_CONTAINER: {
      const Open* to = find(*static_cast<const int*>(argument));
      if (group.container || !to || to->kind != Open::Kind::Container)
        return answer("VFIO_GROUP_SET_CONTAINER", EINVAL, "the group has one, or that is none");
      if (!is_viable(group.group))
        return answer("VFIO_GROUP_SET_CONTAINER", EPERM, "a driver holds a function of the group");
      group.container = to->container;
      ++group.container->groups;
      return 0;
    }
    case VFIO_GROUP_GET_DEVICE_FD:
      return open_device(group, static_cast<const char*>(argument));
    default: return answer("ioctl", ENOTTY, fmt::format("request {:#x}", request));
  }
}

int Bus::open_device(Open& group, const char* address) {
  if (!group.container || !group.container->translates)
    return answer("VFIO_GROUP_GET_DEVICE_FD", EINVAL, "the group has no IOMMU yet");
  const auto slot = slots_.find(address);
  if (slot == slots_.end() || slot->second.iommu_group != group.group ||
      slot->second.driver != "vfio-pci")
    return answer("VFIO_GROUP_GET_DEVICE_FD", ENODEV, address);
  states_[address] = {kMemorySpace, group.container};
  return keep({Open::Kind::Device, "", nullptr, &slot->second});
}

// ---- devices

int Bus::ask_device(Open& device, unsigned long request, void* argument) {
  switch (request) {
    case VFIO_DEVICE_GET_INFO: {
      auto& info = *static_cast<vfio_device_info*>(argument);
      info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
      info.num_regions = VFIO_PCI_NUM_REGIONS;
      return 0;
    }
    case VFIO_DEVICE_GET_REGION_INFO: {
      auto& info = *static_cast<vfio_region_info*>(argument);
      if (info.index >= VFIO_PCI_NUM_REGIONS)
        return answer("VFIO_DEVICE_GET_REGION_INFO", EINVAL, fmt::format("region {}", info.index));
      const bool bar = info.index < device.slot->bar_bytes.size();
      info.offset = uint64_t(info.index) << kRegionShift;
      info.size = bar ? device.slot->bar_bytes[info.index]
                      : info.index == VFIO_PCI_CONFIG_REGION_INDEX ? kConfigBytes : 0;
      info.flags = info.size == 0 ? 0
                                  : VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
                                        (bar ? VFIO_REGION_INFO_FLAG_MMAP : 0);
      return 0;
    }
    case VFIO_DEVICE_RESET: device.slot->function->reset(); return 0;
    default: return answer("ioctl", ENOTTY, fmt::format("request {:#x}", request));
  }
}

intptr_t Bus::mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                   uint64_t offset) {
  std::lock_guard lock(mutex_);
  Open* open = find(fd);
  const bool anonymous = fd < 0;
  if ((open || anonymous) && fails_now()) return -fail_with;
  if (!open) return os::system_kernel().mmap(at, size_bytes, protection, flags, fd, offset);
  const uint64_t bar = offset >> kRegionShift, begin = offset & (kRegionBytes - 1);
  if (open->kind != Open::Kind::Device || bar >= open->slot->bar_bytes.size() ||
      begin % kHostPage || size_bytes > open->slot->bar_bytes[bar] ||
      begin > open->slot->bar_bytes[bar] - size_bytes)
    return answer("mmap", EINVAL, fmt::format("{} bytes at {:#x}", size_bytes, offset));
  return open->slot->function->map(bar, begin, size_bytes, protection);
}

int Bus::munmap(void* at, size_t size_bytes) {
  return os::system_kernel().munmap(at, size_bytes);
}

uint32_t Bus::read_config(const Slot& slot, uint64_t offset) const {
  if (offset == 0) return uint32_t(slot.vendor) | uint32_t(slot.device) << 16;
  if (offset == 4) return states_.at(slot.address).command;
  if (offset == 8) return slot.class_code << 8;
  return 0;
}

// 0, or -errno: the accesses that VFIO takes.
int Bus::check_access(const char* name, const Open& open, size_t size_bytes, uint64_t offset) {
  const uint64_t index = offset >> kRegionShift, begin = offset & (kRegionBytes - 1);
  const bool device = open.kind == Open::Kind::Device;
  const bool config = index == VFIO_PCI_CONFIG_REGION_INDEX;
  const bool bar = device && index < open.slot->bar_bytes.size() && begin % 4 == 0 &&
                   size_bytes == 4 && begin < open.slot->bar_bytes[index];
  if (!bar && !(device && config && size_bytes <= 4 && begin <= kConfigBytes - size_bytes))
    return answer(name, EINVAL, fmt::format("{} bytes at {:#x}", size_bytes, offset));
  return config || (states_[open.slot->address].command & kMemorySpace) ? 0 : -EIO;
}

int64_t Bus::pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) {
  std::lock_guard lock(mutex_);
  Open* open = find(fd);
  if (!open) return os::system_kernel().pread(fd, bytes, size_bytes, offset);
  if (fails_now()) return -fail_with;
  if (const int error = check_access("pread", *open, size_bytes, offset)) return error;
  const uint64_t index = offset >> kRegionShift, begin = offset & (kRegionBytes - 1);
  const uint32_t value = index == VFIO_PCI_CONFIG_REGION_INDEX
                             ? read_config(*open->slot, begin)
                             : open->slot->function->read(index, begin);
  std::memcpy(bytes, &value, size_bytes);
  return int64_t(size_bytes);
}

int64_t Bus::pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) {
  std::lock_guard lock(mutex_);
  Open* open = find(fd);
  if (!open) return os::system_kernel().pwrite(fd, bytes, size_bytes, offset);
  if (fails_now()) return -fail_with;
  if (const int error = check_access("pwrite", *open, size_bytes, offset)) return error;
  const uint64_t index = offset >> kRegionShift, begin = offset & (kRegionBytes - 1);
  uint32_t value = 0;
  std::memcpy(&value, bytes, size_bytes);
  if (index != VFIO_PCI_CONFIG_REGION_INDEX)
    open->slot->function->write(index, begin, value);
  else if (begin == 4 && size_bytes == 2)
    states_[open->slot->address].command = uint16_t(value);
  else
    return answer("pwrite", EINVAL, fmt::format("configuration at {:#x}", begin));
  return int64_t(size_bytes);
}

}  // namespace tuff::emu::pci
