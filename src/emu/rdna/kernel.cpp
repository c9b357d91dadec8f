#include "emu/rdna/kernel.h"

#include <cstring>

#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

template <class T>
T field(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

Descriptor parse_descriptor(std::span<const uint8_t> bytes) {
  if (bytes.size() < 64) {
    fail<InvalidArgument>("a kernel descriptor has 64 bytes, these are {}", bytes.size());
  }
  Descriptor d;
  d.lds_bytes = field<uint32_t>(bytes, 0);
  d.scratch_bytes = field<uint32_t>(bytes, 4);
  d.kernarg_bytes = field<uint32_t>(bytes, 8);
  d.entry_offset = field<int64_t>(bytes, 16);
  d.rsrc3 = field<uint32_t>(bytes, 44);
  d.rsrc1 = field<uint32_t>(bytes, 48);
  d.rsrc2 = field<uint32_t>(bytes, 52);
  d.properties = field<uint16_t>(bytes, 56);
  return d;
}

Launch launch_of(const Kernel& kernel, uint64_t kernarg_address, uint64_t packet_address) {
  const Descriptor& d = kernel.descriptor;
  Launch launch;
  launch.kernel = kernel.name;
  launch.entry_address = kernel.entry_address;
  launch.rsrc1 = d.rsrc1;
  launch.rsrc2 = d.rsrc2;
  launch.rsrc3 = d.rsrc3;
  launch.lds_bytes = d.lds_bytes;
  launch.scratch_bytes = d.scratch_bytes;
  launch.user_data_written = 0;
  uint32_t next = 0;
  const auto put = [&](uint64_t value, uint32_t count) {
    for (uint32_t k = 0; k < count && next < launch.user_data.size(); ++k, ++next) {
      launch.user_data[next] = k < 2 ? uint32_t(value >> (32 * k)) : 0;
      launch.user_data_written |= uint16_t(1u << next);
    }
  };
  if (d.properties & 1) put(0, 4);                // private segment buffer
  if (d.properties & 2) put(packet_address, 2);   // dispatch packet
  if (d.properties & 4) put(0, 2);                // queue
  if (d.properties & 8) put(kernarg_address, 2);  // kernel arguments
  if (d.properties & 16) put(0, 2);               // dispatch id
  if (d.properties & 32) put(0, 2);               // flat scratch
  if (d.properties & 64) put(d.scratch_bytes, 1);
  return launch;
}

}  // namespace tuff::emu::rdna
