// NVIDIA's command stream, on paper: from neutral commands to methods, QMDs and GPFIFO entries, as
// pure functions. No device uses it yet; it is here so that neutral commands fit a third kind of
// hardware. Knows no ioctls.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "devices/packet_stream.h"
#include "hcq/command.h"

namespace tuff::devices::nv {

struct Generation {
  std::string_view name;
  uint16_t compute_class, copy_class;
  uint8_t qmd_major;    // 3: QMD V03_00, 4: V04_00
  uint16_t qmd_dwords;  //
  uint8_t sass_version;
  uint8_t bank_shift;                       // of a constant bank's address in a QMD
  std::array<uint16_t, 10> shared_configs;  // KiB of shared memory that an SM can be set to; then 0
};
const Generation& ampere();
const Generation& hopper();

// A loaded kernel as a QMD needs it. It takes one parameter: the argument block's address.
struct KernelCode {
  uint64_t entry = 0;
  uint32_t registers = 0, barriers = 0, shared_bytes = 0;
  uint32_t local_bytes = 0;       // per thread
  uint32_t parameter_offset = 0;  // in constant bank 0, from the cubin's PARAM_CBANK
  std::array<uint16_t, 3> local{1, 1, 1};
};

class Binding {
 public:
  virtual ~Binding() = default;
  virtual KernelCode kernel(const hcq::Program& program) const = 0;
  virtual uint64_t signal_address(const hcq::Signal& signal) const = 0;
};

struct EncodeInput {
  const Generation& generation;
  const Binding& binding;
  const hcq::CommandList& list;
  const hcq::Signal* timeline = nullptr;
  // list.timestamp_count * 16 bytes; the time in ns is the second half of each.
  uint64_t timestamps = 0;
};

// `methods` go into a pushbuffer. `launches`: the QMD and constant bank of every dispatch, in
// memory at the address, 256-byte aligned, that slot launch_address gives. Slots before: the
// list's, then the timeline's value. Values have 64 bits, so there is nothing to rebase.
struct Encoded {
  PacketStream methods, launches;
  uint32_t timeline_slot = 0, launch_address = 0;
  uint32_t value_count() const { return launch_address + 1; }
};

// Throws Unsupported for what such a channel cannot do, InvalidArgument for a malformed list.
Encoded encode_compute(const EncodeInput& input);
Encoded encode_copy(const EncodeInput& input);

// What a channel is given before all else.
struct ComputeSetup {
  uint64_t shared_window = 0, local_window = 0;
  uint64_t local_memory = 0, local_bytes_per_tpc = 0;
};
PacketStream setup_compute(const Generation& generation, const ComputeSetup& setup);
PacketStream setup_copy(const Generation& generation);

// The GPFIFO entry that has the channel run a pushbuffer.
uint64_t gpfifo_entry(uint64_t address, uint32_t dwords);

}  // namespace tuff::devices::nv
