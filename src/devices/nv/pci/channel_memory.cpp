#include "devices/nv/pci/channel_memory.h"

#include <cstring>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kInstanceBytes = 4096, kRamfcBytes = 512;
// Of internal flags: no record of errors is kept in memory, which come as events.
constexpr uint32_t kNoErrorNotifier = 1u << 2, kNoEccNotifier = 1u << 4;
constexpr uint32_t kMostMethodBytes = 1u << 20;

uint32_t method_bytes(const GspCalls& calls, nvrm::Handle subdevice) {
  nvrm::MethodBufferSize size{};
  calls.control(subdevice, nvrm::control::MethodBufferSize, "CE_GET_FAULT_METHOD_BUFFER_SIZE",
                size);
  if (size.bytes == 0 || size.bytes > kMostMethodBytes)
    fail<DeviceLost>("NV: the GSP asks for {} bytes for a channel's methods", size.bytes);
  return size.bytes;
}

}  // namespace

ChannelMemory::ChannelMemory(PciDevice& device, VideoMemory& video, const GspCalls& calls,
                             nvrm::Handle subdevice)
    : instance_(video, kInstanceBytes, kInstanceBytes, true),
      methods_(device, method_bytes(calls, subdevice)) {
  std::memset(instance_.host(), 0, kInstanceBytes);
}

void ChannelMemory::describe(nvrm::ChannelParameters& p, uint64_t userd,
                             ChannelPrivilege privilege) const {
  p.instance = {instance_.address(), kInstanceBytes, nvrm::kVideoMemory, 0};
  p.ramfc = {instance_.address(), kRamfcBytes, nvrm::kVideoMemory, 0};
  p.userd = {userd, nvrm::kUserdBytes, nvrm::kVideoMemory, 0};
  p.method_buffer = {methods_.address(), methods_.size_bytes(), nvrm::kSystemMemory, 0};
  p.internal_flags = uint32_t(privilege) | kNoErrorNotifier | kNoEccNotifier;
}

}  // namespace tuff::devices::nv
