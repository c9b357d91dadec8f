// What PM4, SDMA and AQL have in common: from a list of neutral commands to packets, as pure
// functions: nothing is opened, allocated on a device or submitted, so that they are tested without
// one. Called by the queues of devices/amd; kernels come from load, memory from kfd.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "devices/amd/generation.h"
#include "devices/packet_stream.h"
#include "hcq/command.h"

namespace tuff::devices::amd {

// A signal's value in a packet: 32 bits of a slot's 64, relative to the signal's base at the time
// of the submission (see SignalEpoch). Same signal, same slot: one word.
struct SignalWord {
  const hcq::Signal* signal = nullptr;
  uint32_t value_slot = 0;
  bool operator==(const SignalWord&) const = default;
};

// The values that patches read: the list's slots, the queue's own timeline value, the address at
// which the stream's indirect buffer lies, then the signal words.
struct SlotLayout {
  uint32_t list_slots = 0;
  uint32_t timeline() const { return list_slots; }
  uint32_t ib_address() const { return list_slots + 1; }
  uint32_t word(uint32_t i) const { return list_slots + 2 + i; }
};

// A loaded kernel as dispatches need it; register values as the hardware takes them (LDS size in).
struct KernelCode {
  uint64_t entry = 0;       // first instruction, 256-byte aligned
  uint64_t descriptor = 0;  // kernel descriptor in GPU memory (AQL)
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // KernelProperty bits
  uint32_t private_bytes = 0, group_bytes = 0;
  std::array<uint16_t, 3> local{1, 1, 1};
};
// kernel_code_properties of a kernel descriptor. Source: LLVM AMDHSAKernelDescriptor.h.
// Bits that are none of these are not known here (see load).
enum KernelProperty : uint16_t {
  kPrivateSegmentBuffer = 1 << 0,
  kDispatchPtr = 1 << 1,
  kQueuePtr = 1 << 2,
  kKernargSegmentPtr = 1 << 3,
  kDispatchId = 1 << 4,
  kFlatScratchInit = 1 << 5,
  kPrivateSegmentSize = 1 << 6,
  kWave32 = 1 << 10,
};

// What stands behind the handles in a command list.
class Binding {
 public:
  virtual ~Binding() = default;
  virtual KernelCode kernel(const hcq::Program& program) const = 0;
  // The word that packets write and compare: the lower half of the signal's slot.
  virtual uint64_t signal_address(const hcq::Signal& signal) const = 0;
};

struct ScratchArea {
  uint64_t address = 0;
  ScratchSize size;
};

// How the queue's timeline is raised at the list's end: the value, then, where `mailbox` is given,
// an interrupt with the event's id, which KFD looks for in the mailbox.
struct Completion {
  const hcq::Signal* timeline = nullptr;
  uint64_t mailbox = 0;
  uint32_t event_id = 0;
};

// Timestamps are ticks of 8 bytes; SDMA wants them this far apart.
inline constexpr uint32_t kTimestampStride = 32;

struct EncodeInput {
  const Generation& generation;
  const Binding& binding;
  const hcq::CommandList& list;
  Completion completion;
  ScratchArea scratch;
  uint64_t timestamps = 0;  // address of list.timestamp_count * kTimestampStride bytes
  uint32_t xccs = 1;
};

// An encoded list. Of AQL: `packets` go into the ring, `ib` is what vendor packets among them jump
// to, at the address that slot SlotLayout::ib_address() gives. Else `ib` alone: PM4 for an indirect
// buffer (or a ring), SDMA for a ring.
struct Encoded {
  PacketStream packets, ib;
  SlotLayout slots;
  std::vector<SignalWord> words;  // patches read them as slots.word(i)
  size_t value_count() const { return slots.word(uint32_t(words.size())); }
};

// Each throws Unsupported for what such a queue cannot do, InvalidArgument for a malformed list.
Encoded encode_pm4(const EncodeInput& input);   // one XCC
Encoded encode_aql(const EncodeInput& input);   // any number of XCCs
Encoded encode_sdma(const EncodeInput& input);  // copies

// The packet by which a ring of PM4 runs an indirect buffer.
std::array<uint32_t, 4> indirect_buffer(uint64_t address, uint32_t dwords);

}  // namespace tuff::devices::amd
