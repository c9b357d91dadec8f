// NVIDIA's command stream, on paper: from neutral commands to methods, QMDs and GPFIFO entries, as
// pure functions. Called by NvQueue. Knows no ioctls.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "devices/nv/encode/generation.h"
#include "devices/packet_stream.h"
#include "hcq/command.h"

namespace tuff::devices::nv {

// A loaded kernel as a QMD needs it. It takes one parameter: the argument block's address.
struct KernelCode {
  uint64_t entry = 0;
  uint32_t registers = 0, barriers = 0, shared_bytes = 0;
  uint32_t local_bytes = 0;       // per thread
  uint32_t parameter_offset = 0;  // in constant bank 0, from the cubin's PARAM_CBANK
  std::array<uint16_t, 3> local{1, 1, 1};
  struct Bank {  // a further constant bank
    uint32_t number = 0, bytes = 0;
    uint64_t address = 0;
  };
  std::vector<Bank> banks;
};

// Where generic addresses of shared and local memory are, 4 GiB each, beside all others.
inline constexpr uint64_t kSharedWindow = 0x7294'0000'0000, kLocalWindow = 0x7293'0000'0000;

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
  // A launch whose size along an axis is that slot's value: where it comes to 0, its kLaunchDwords
  // from `dword` on do nothing.
  struct SizedLaunch {
    uint32_t dword = 0, slot = 0;
  };
  std::vector<SizedLaunch> sized;
  uint32_t value_count() const { return launch_address + 1; }
  // The methods with a submission's values, over what was written before.
  void patch_methods(std::span<const uint64_t> values, uint32_t* out) const;
};
inline constexpr uint32_t kLaunchDwords = 4;

// Throws Unsupported for what such a channel cannot do, InvalidArgument for a malformed list.
Encoded encode_compute(const EncodeInput& input);
Encoded encode_copy(const EncodeInput& input);

// What a channel is given before all else; and memory for the local memory of kernels, once what
// was launched before has ended.
PacketStream setup_compute(const Generation& generation);
PacketStream setup_local_memory(uint64_t address, uint64_t bytes_per_tpc);
PacketStream setup_copy(const Generation& generation);

// A release of a semaphore once all before it has ended, behind other methods.
void append_release(PacketStream& methods, uint64_t address, uint64_t value);

// The GPFIFO entry that has the channel run a pushbuffer.
uint64_t gpfifo_entry(uint64_t address, uint32_t dwords);

}  // namespace tuff::devices::nv
