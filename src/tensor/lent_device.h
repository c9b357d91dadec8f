// What sharing with applications has in common for every kind of device: names of the devices that
// they lend, closing them, and finding where a tensor lies. Called by interop_*.cpp; knows no
// device's own types.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include <tuff/tensor.h>

#include "engine/buffer.h"
#include "engine/device.h"

namespace tuff::detail {

class LentDevices {
 public:
  // "VULKAN", and the names of the calls that users know.
  constexpr LentDevices(const char* kind, const char* open, const char* close)
      : kind_(kind), open_(open), close_(close) {}
  std::string next_name();  // "VULKAN:app0"
  // InvalidArgument unless the name is one of next_name().
  void require(std::string_view what, const std::string& device) const;
  // InvalidArgument, ending in `remedy`, while its memory is still held.
  void close(const std::string& device, std::string_view remedy) const;

 private:
  const char *const kind_, *const open_, *const close_;
  std::atomic<uint32_t> opened_{0};
};

// Where a tensor lies once it is realized.
struct Realized {
  std::shared_ptr<engine::Device> device;
  Ref<engine::Buffer> buffer;
};
// InvalidArgument unless it is on a device of the kind.
Realized realized_on(std::string_view kind, std::string_view what, const Tensor& given);

// What reads the tensor's memory by the host waits until its device has reached the value.
void host_waits(const Tensor& tensor, uint64_t value);

}  // namespace tuff::detail
