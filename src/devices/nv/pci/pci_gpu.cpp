#include "devices/nv/pci/pci_gpu.h"

#include <cstring>

#include "base/check.h"
#include "devices/nv/pci/channel_memory.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kRegisters = 0, kAperture = 1;  // BARs
constexpr uint64_t kUsermode = 0xbb0000, kTimeLow = kUsermode + 0x80, kTimeHigh = kUsermode + 0x84;
constexpr uint32_t kTries = 8;
// Of the channel that the golden context is made by: it may all, and has a number that no other
// channel has (NVOS04_FLAGS_PRIVILEGED_CHANNEL, _CHANNEL_USERD_INDEX_*).
constexpr uint32_t kPrivileged = 1u << 5, kFixedNumber = 1u << 21, kGoldenNumber = 3u << 8;
constexpr uint32_t kGoldenEntries = 32;

const Firmware& told(const Firmware& firmware, std::string& version) {
  version = firmware.version;
  return firmware;
}

Firmware firmware_for(os::Kernel& kernel, PciDevice& device, uint64_t timeout_ms) {
  return load_firmware(kernel, *BootRegisters(device, timeout_ms).chip().family);
}

}  // namespace

PciGpu::PciGpu(std::shared_ptr<os::Kernel> kernel, const PciFunction& function,
               uint64_t timeout_ms)
    : device_(kernel, function),
      gsp_(device_, told(firmware_for(*kernel, device_, timeout_ms), version_),
           timeout_ms) {
  open_objects();
  facts_ = read_gsp_facts(*calls(), subdevice(), gsp_.chip(), device_.bar_bytes(kAperture));
  if (!facts().missing.empty())
    fail<Unsupported>("{}: {}", function.address, facts().missing);
  video_.emplace(device_, family(), facts_.usable, timeout_ms, calls());
  doorbells_ = device_.map(kRegisters, kUsermode, nvrm::kUsermodeBytes);
  try {
    make_golden_context();
  } catch (...) {
    device_.unmap(doorbells_, nvrm::kUsermodeBytes);
    throw;
  }
}

PciGpu::~PciGpu() { device_.unmap(doorbells_, nvrm::kUsermodeBytes); }

void PciGpu::open_objects() {
  nvrm::DeviceParameters device{};
  device.client_share = calls()->root();
  device_object_.emplace(calls(), calls()->root(), nvrm::object::Device, "device", device);
  nvrm::SubdeviceParameters sub{};
  subdevice_.emplace(calls(), device_object(), nvrm::object::Subdevice, "subdevice", sub);
}

// A channel that never runs, in a space that the firmware has a part of: that something computes
// there makes the firmware keep the engine's first state, which every later context begins with.
void PciGpu::make_golden_context() {
  GspVaSpace space(calls(), device_object(), family().mmu, *video_, VaSpaceKind::Shared);
  constexpr uint64_t page = 4096;
  const VideoPiece ring(*video_, page, page, true);
  std::memset(ring.host(), 0, page);
  const uint64_t address = space.map(ring.address(), page, page, {});
  const ChannelMemory memory(device_, *video_, *calls(), subdevice());
  nvrm::ChannelParameters p{};
  p.gpfifo_address = address;
  p.gpfifo_entries = kGoldenEntries;
  p.flags = kPrivileged | kFixedNumber | kGoldenNumber;
  p.va_space = space.handle();
  p.engine = nvrm::kEngineGraphics;
  const uint64_t userd = ring.address() + nvrm::kUserdBytes;
  memory.describe(p, userd, ChannelPrivilege::Admin);
  std::vector<std::byte> bytes(gsp_branch().channel_bytes);
  std::memcpy(bytes.data(), &p, sizeof p);
  std::optional<GraphicsContext> context;  // mapped until the channel is gone
  {
    const Object channel(calls(), device_object(), facts().gpfifo_class, "channel",
                         std::span(bytes));
    context.emplace(graphics_parts(), space, channel.handle(), nullptr);
    const Object compute(calls(), channel.handle(), facts().generation->compute_class, "engine");
  }
  golden_ = context->shared();
  context.reset();
  space.unmap(address, page);
}

// The halves are read until the upper one has not changed.
uint64_t PciGpu::time_ns() const {
  uint32_t high = device_.read(kRegisters, kTimeHigh);
  for (uint32_t i = 0; i < kTries; ++i) {
    const uint32_t low = device_.read(kRegisters, kTimeLow);
    const uint32_t again = device_.read(kRegisters, kTimeHigh);
    if (again == high) return uint64_t{high} << 32 | low;
    high = again;
  }
  fail<DeviceLost>("{}: its clock cannot be read", device_.function().address);
}

void PciGpu::reset(const std::string& why) noexcept {
  calls()->lose(fmt::format("{}: it was reset: {}", device_.function().address, why));
}

}  // namespace tuff::devices::nv
