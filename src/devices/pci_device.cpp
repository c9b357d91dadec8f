#include "devices/pci_device.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <span>

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"

namespace tuff::devices {
namespace {

constexpr size_t kHostPage = 4096;
// Bits of the command register in configuration space (PCI Local Bus Specification 3.0, 6.2.2).
constexpr uint64_t kCommandRegister = 4;
constexpr uint16_t kMemorySpace = 1u << 1, kBusMaster = 1u << 2;
// Below lie the host's devices, and what firmware has reserved.
constexpr uint64_t kFirstDmaAddress = 1ull << 32;

// Addresses that a device's own page tables reach by large pages, where it has such.
uint64_t iova_alignment(uint64_t size_bytes) {
  constexpr uint64_t huge = 2u << 20, big = 64u << 10;
  return size_bytes >= huge ? huge : size_bytes >= big ? big : kHostPage;
}

}  // namespace

// ---- taking it

PciDevice::PciDevice(std::shared_ptr<os::Kernel> kernel, PciFunction function)
    : kernel_(std::move(kernel)), function_(std::move(function)) {
  const std::string refusal = pci_refusal(*kernel_, function_);
  if (!refusal.empty()) fail<Unsupported>("{}: {}", function_.address, refusal);
  container_ = open("/dev/vfio/vfio");
  group_ = open("/dev/vfio/" + function_.iommu_group);
  join_group();
  read_regions();
  read_dma_ranges();
  set_command(uint16_t((command() | kMemorySpace) & ~kBusMaster));
}

PciDevice::~PciDevice() {
  try {
    set_command(uint16_t(command() & ~kBusMaster));
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

KernelFile PciDevice::open(const std::string& path) const {
  const int fd = kernel_->open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail_call(fmt::format("open({})", path), -fd);
  return {*kernel_, fd};
}

void PciDevice::fail_call(const std::string& call, int error) const {
  const std::string said =
      fmt::format("{}: {} failed: {}", function_.address, call, std::strerror(error));
  switch (error) {
    case EBUSY: fail<Unsupported>("{}; another process has it", said);
    case EACCES:
    case EPERM: fail<Unsupported>("{}; this user needs /dev/vfio (chown, or a rule of udev)", said);
    case ENOENT: fail<Unsupported>("{}; load the kernel module vfio-pci", said);
    case ENOSPC: fail<OutOfMemory>("{}; the IOMMU has no room for more mappings", said);
    case ENOMEM: fail<OutOfMemory>("{}; raise the limit of locked memory (ulimit -l)", said);
    case EIO:
    case ENODEV:
    case ENXIO: fail<DeviceLost>("{}; it was reset, or is gone: see dmesg", said);
    default: fail<IoError>("{}; see dmesg", said);
  }
}

int PciDevice::call(int fd, unsigned long request, void* argument, const char* name) const {
  const int result = kernel_->ioctl(fd, request, argument);
  if (result < 0) fail_call(name, -result);
  return result;
}

// A group is viable when nothing else drives a function of it, which the kernel knows for sure.
void PciDevice::join_group() {
  if (call(container_.fd(), VFIO_GET_API_VERSION, nullptr, "VFIO_GET_API_VERSION") !=
          VFIO_API_VERSION ||
      call(container_.fd(), VFIO_CHECK_EXTENSION, reinterpret_cast<void*>(VFIO_TYPE1v2_IOMMU),
           "VFIO_CHECK_EXTENSION") == 0)
    fail<Unsupported>("{}: this kernel's VFIO has no IOMMU of type 1v2", function_.address);
  vfio_group_status status{sizeof status, 0};
  call(group_.fd(), VFIO_GROUP_GET_STATUS, &status, "VFIO_GROUP_GET_STATUS");
  if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
    fail<Unsupported>("{}: a driver holds another function of its IOMMU group {}",
                      function_.address, function_.iommu_group);
  int container = container_.fd();
  call(group_.fd(), VFIO_GROUP_SET_CONTAINER, &container, "VFIO_GROUP_SET_CONTAINER");
  call(container_.fd(), VFIO_SET_IOMMU, reinterpret_cast<void*>(VFIO_TYPE1v2_IOMMU),
       "VFIO_SET_IOMMU");
  std::string address = function_.address;
  device_ = {*kernel_, call(group_.fd(), VFIO_GROUP_GET_DEVICE_FD, address.data(),
                            "VFIO_GROUP_GET_DEVICE_FD")};
}

void PciDevice::read_regions() {
  for (uint32_t i = 0; i <= VFIO_PCI_CONFIG_REGION_INDEX; ++i) {
    vfio_region_info info{};
    info.argsz = sizeof info;
    info.index = i;
    call(device_.fd(), VFIO_DEVICE_GET_REGION_INFO, &info, "VFIO_DEVICE_GET_REGION_INFO");
    regions_.push_back({info.size, info.offset, info.flags});
  }
}

// What the IOMMU can translate: one range of it, the largest that lies high enough.
void PciDevice::read_dma_ranges() {
  std::vector<uint64_t> words(512);
  auto* const info = reinterpret_cast<vfio_iommu_type1_info*>(words.data());
  const auto bytes = std::as_bytes(std::span(words));
  info->argsz = uint32_t(bytes.size());
  call(container_.fd(), VFIO_IOMMU_GET_INFO, info, "VFIO_IOMMU_GET_INFO");
  uint64_t first = 0, end = 0;
  uint32_t at = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0;
  while (at != 0 && at <= bytes.size() - sizeof(vfio_iommu_type1_info_cap_iova_range)) {
    vfio_iommu_type1_info_cap_iova_range head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
      const auto ranges = bytes.subspan(at + sizeof head);
      const size_t count = std::min<size_t>(head.nr_iovas, ranges.size() / sizeof(vfio_iova_range));
      for (size_t i = 0; i < count; ++i) {
        vfio_iova_range r;
        std::memcpy(&r, ranges.data() + i * sizeof r, sizeof r);
        const uint64_t begin = std::max<uint64_t>(r.start, kFirstDmaAddress);
        if (r.end > begin && r.end - begin > end - first) first = begin, end = r.end;
      }
    }
    at = head.header.next > at ? head.header.next : 0;
  }
  if (first == end)
    fail<Unsupported>("{}: the IOMMU says of no addresses above {:#x} that it translates them",
                      function_.address, kFirstDmaAddress);
  dma_addresses_.emplace(function_.address, first, end);
}

// ---- its registers

uint32_t PciDevice::read(size_t bar, uint64_t offset) const {
  TUFF_CHECK(offset % 4 == 0 && offset < bar_bytes(bar), "BAR {} at {:#x}", bar, offset);
  uint32_t value = 0;
  const int64_t got =
      kernel_->pread(device_.fd(), &value, sizeof value, regions_[bar].offset + offset);
  if (got != sizeof value)
    fail_call(fmt::format("reading BAR {} at {:#x}", bar, offset), got < 0 ? int(-got) : EIO);
  return value;
}

void PciDevice::write(size_t bar, uint64_t offset, uint32_t value) const {
  TUFF_CHECK(offset % 4 == 0 && offset < bar_bytes(bar), "BAR {} at {:#x}", bar, offset);
  const int64_t put =
      kernel_->pwrite(device_.fd(), &value, sizeof value, regions_[bar].offset + offset);
  if (put != sizeof value)
    fail_call(fmt::format("writing BAR {} at {:#x}", bar, offset), put < 0 ? int(-put) : EIO);
}

std::byte* PciDevice::map(size_t bar, uint64_t offset, size_t size_bytes) const {
  const Region& r = regions_[bar];
  if (!(r.flags & VFIO_REGION_INFO_FLAG_MMAP) || size_bytes > r.size_bytes ||
      offset > r.size_bytes - size_bytes)
    fail<Unsupported>("{}: {} bytes at {:#x} of BAR {} ({} bytes) cannot be mapped",
                      function_.address, size_bytes, offset, bar, r.size_bytes);
  const intptr_t at = kernel_->mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                    device_.fd(), r.offset + offset);
  if (at < 0 && at > -4096) fail_call(fmt::format("mapping BAR {}", bar), int(-at));
  return reinterpret_cast<std::byte*>(at);
}

void PciDevice::unmap(std::byte* at, size_t size_bytes) const noexcept {
  const int result = kernel_->munmap(at, size_bytes);
  if (result < 0) log_warn("{}: munmap failed: error {}", function_.address, -result);
}

uint32_t PciDevice::read_config(uint64_t offset) const {
  uint32_t value = 0;
  const int64_t got = kernel_->pread(device_.fd(), &value, sizeof value,
                                     regions_[VFIO_PCI_CONFIG_REGION_INDEX].offset + offset);
  if (got != sizeof value)
    fail_call(fmt::format("reading configuration at {:#x}", offset), got < 0 ? int(-got) : EIO);
  return value;
}

uint16_t PciDevice::command() const {
  uint16_t bits = 0;
  const int64_t got = kernel_->pread(
      device_.fd(), &bits, sizeof bits,
      regions_[VFIO_PCI_CONFIG_REGION_INDEX].offset + kCommandRegister);
  const bool is_gone = got == sizeof bits && bits == 0xffff;
  if (got != sizeof bits || is_gone)
    fail_call("reading the command register", got < 0 ? int(-got) : EIO);
  return bits;
}

void PciDevice::set_command(uint16_t bits) const {
  const int64_t put = kernel_->pwrite(
      device_.fd(), &bits, sizeof bits,
      regions_[VFIO_PCI_CONFIG_REGION_INDEX].offset + kCommandRegister);
  if (put != sizeof bits) fail_call("writing the command register", put < 0 ? int(-put) : EIO);
}

void PciDevice::start_dma() { set_command(uint16_t(command() | kBusMaster)); }

void PciDevice::reset() const {
  vfio_device_info info{};
  info.argsz = sizeof info;
  call(device_.fd(), VFIO_DEVICE_GET_INFO, &info, "VFIO_DEVICE_GET_INFO");
  if (!(info.flags & VFIO_DEVICE_FLAGS_RESET))
    fail<Unsupported>("{}: the kernel has no way to reset it; restart the machine",
                      function_.address);
  call(device_.fd(), VFIO_DEVICE_RESET, nullptr, "VFIO_DEVICE_RESET");
}

AwaitedRegister wait_for_register(const PciDevice& device, size_t bar, uint64_t offset,
                                  uint32_t mask, uint32_t value,
                                  std::chrono::microseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + timeout;
  for (;;) {
    const bool late = Clock::now() >= end;
    const uint32_t seen = device.read(bar, offset);
    if ((seen & mask) == value || late) return {(seen & mask) == value, seen};
    std::this_thread::yield();
  }
}

// ---- memory of the host

DmaMemory::DmaMemory(PciDevice& device, size_t size_bytes)
    : device_(device), size_(align_up(size_bytes, kHostPage)) {
  // Shared: after fork() a private page that is written to would be another than the device's.
  const intptr_t at = device.kernel_->mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at > -4096) device.fail_call(fmt::format("mmap of {} bytes", size_), int(-at));
  host_ = reinterpret_cast<std::byte*>(at);
  vfio_iommu_type1_dma_map map{};
  try {
    address_ = device.dma_addresses_->reserve(size_, iova_alignment(size_));
    map = {sizeof map, VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, uint64_t(at), address_,
           size_};
    device.call(device.container_.fd(), VFIO_IOMMU_MAP_DMA, &map, "VFIO_IOMMU_MAP_DMA");
  } catch (...) {
    if (address_) device.dma_addresses_->give_back(address_);
    device.unmap(host_, size_);
    throw;
  }
}

DmaMemory::~DmaMemory() {
  vfio_iommu_type1_dma_unmap unmap{};
  unmap.argsz = sizeof unmap;
  unmap.iova = address_;
  unmap.size = size_;
  os::Kernel& kernel = *device_.kernel_;
  int result = -1;
  for (int attempt = 0; attempt < 2 && result != 0; ++attempt)
    result = kernel.ioctl(device_.container_.fd(), VFIO_IOMMU_UNMAP_DMA, &unmap);
  // What is still translated must stay memory: the device may write to it.
  if (result != 0) {
    log_warn("{}: VFIO_IOMMU_UNMAP_DMA failed: error {}", device_.function_.address, -result);
    return;
  }
  device_.dma_addresses_->give_back(address_);
  device_.unmap(host_, size_);
}

}  // namespace tuff::devices
