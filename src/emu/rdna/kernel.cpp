#include "emu/rdna/kernel.h"

namespace tuff::emu::rdna {

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
