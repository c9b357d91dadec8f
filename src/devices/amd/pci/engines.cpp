#include "devices/amd/pci/engines.h"

#include <bit>
#include <chrono>
#include <thread>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

// The descriptor's dwords from here on are those of registers, from CP_MQD_BASE_ADDR on.
constexpr uint32_t kFirstOfRegisters = 0x80, kQueueRegisters = 0x1fe0 - 0x1fa9 + 1;
enum QueueWord : uint32_t {
  kMqdBase = 0x80,
  kVmid = 0x83,
  kPersistentState = 0x84,
  kPipePriority = 0x85,
  kQueuePriority = 0x86,
  kQuantum = 0x87,
  kRingBase = 0x88,
  kReadPointerReport = 0x8b,
  kWritePointerPoll = 0x8d,
  kDoorbellControl = 0x8f,
  kRingControl = 0x91,
  kIbControl = 0x95,
  kStatus0 = 0xa0,
  kMqdControl = 0xa2,
  kEndOfPipeBase = 0xa5,
  kEndOfPipeControl = 0xa7,
};
// The engine does not clamp it. Source: kfd_mqd_manager_v11.c @00fa403 (update_mqd).
constexpr uint32_t kMostEndOfPipeBytes = 8192;
constexpr uint32_t kMqdHeader = 0xc031'0800;
constexpr uint32_t kThreadManagement[] = {23, 24, 26, 27, 44, 45, 46, 47};  // of shader engines

// MEC's only pipe in use: ME 1, pipe 0, queue 0.
constexpr uint32_t kMicroEngine1 = 1u << 2;
constexpr uint32_t kPipe0Reset = 1u << 16, kPipe0Active = 1u << 26, kHalt = 1u << 30;
constexpr uint32_t kBootDone = 1u << 31;
constexpr uint32_t kDrainAndReset = 2, kDoorbellsUpTo = 0xf8;
// Addresses of 64 bits, unaligned accesses allowed, three instruction lines ahead.
constexpr uint32_t kMemoryConfig = 3u << 2 | 3u << 14;
// Bits 48 and up of workgroup memory and of scratch among flat addresses.
constexpr uint32_t kMemoryBases = 1u << 16 | 2;

// Port's doorbells: enabled, AWID, offset and size of its range, upper address bits 3.
uint32_t doorbell_port(uint32_t awid, uint32_t offset, uint32_t size) {
  return 1 | awid << 1 | offset << 7 | size << 17 | 3u << 28;
}

void check_queue(const EngineQueue& q) {
  if (!std::has_single_bit(q.ring_bytes) || q.ring_bytes < 4096 || q.ring_address % 256 != 0 ||
      q.read_pointer_address % 4 != 0 || q.write_pointer_address % 8 != 0)
    fail<InvalidArgument>("AMD: no ring of {} bytes at {:#x} with pointers at {:#x} and {:#x}",
                          q.ring_bytes, q.ring_address, q.read_pointer_address,
                          q.write_pointer_address);
}

// A size as a power of two of dwords, of which registers have one less.
uint32_t size_field(uint32_t bytes) { return uint32_t(std::bit_width(bytes / 4)) - 2; }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

QueueDescriptor queue_descriptor(const EngineQueue& q) {
  check_queue(q);
  if (!std::has_single_bit(q.end_of_pipe_bytes) || q.end_of_pipe_bytes < 256 ||
      q.end_of_pipe_bytes > kMostEndOfPipeBytes || q.end_of_pipe_address % 256 != 0 ||
      q.descriptor_address % 256 != 0)
    fail<InvalidArgument>("AMD: no end-of-pipe buffer of {} bytes at {:#x}, descriptor at {:#x}",
                          q.end_of_pipe_bytes, q.end_of_pipe_address, q.descriptor_address);
  QueueDescriptor d{};
  const auto put_pair = [&](uint32_t at, uint64_t value) {
    d[at] = uint32_t(value);
    d[at + 1] = uint32_t(value >> 32);
  };
  d[0] = kMqdHeader;
  for (const uint32_t at : kThreadManagement) d[at] = ~0u;
  put_pair(kMqdBase, q.descriptor_address);
  d[kPersistentState] = 1 | 0x55u << 8;  // what lies before these is loaded with the queue
  d[kPipePriority] = 2;
  d[kQueuePriority] = 0xf;
  d[kQuantum] = 0x111;
  put_pair(kRingBase, q.ring_address >> 8);
  put_pair(kReadPointerReport, q.read_pointer_address);
  put_pair(kWritePointerPoll, q.write_pointer_address);
  d[kDoorbellControl] = 2 * kComputeDoorbell << 2 | 1u << 30;
  d[kRingControl] = size_field(q.ring_bytes) | 5u << 8;
  d[kIbControl] = 3u << 20;
  d[kStatus0] = 1u << 14;
  d[kMqdControl] = 1u << 8;
  put_pair(kEndOfPipeBase, q.end_of_pipe_address >> 8);
  d[kEndOfPipeControl] = size_field(q.end_of_pipe_bytes);
  return d;
}

// ---- compute

void ComputeEngine::wait_for_firmware() const {
  registers_.wait_for("RLC has not loaded the firmware", reg::RLC_RLCS_BOOTLOAD_STATUS, kBootDone,
                      kBootDone);
  registers_.wait_for("the command processors do not come to rest", reg::CP_STAT, ~0u, 0);
}

void ComputeEngine::select_queue(bool selected) const {
  registers_.write(reg::GRBM_GFX_CNTL, selected ? kMicroEngine1 : 0);
}

void ComputeEngine::start(uint64_t first_instruction) const {
  registers_.write(reg::DoorbellApertureEnable, 1);
  registers_.write(reg::DoorbellEntry0, doorbell_port(3, 0, 0));
  registers_.write(reg::DoorbellEntry3, doorbell_port(6, 0, 0));
  registers_.write(reg::CP_MEC_DOORBELL_RANGE_LOWER, 0);
  registers_.write(reg::CP_MEC_DOORBELL_RANGE_UPPER, kDoorbellsUpTo);
  registers_.write(reg::SH_MEM_CONFIG, kMemoryConfig);
  registers_.write(reg::SH_MEM_BASES, kMemoryBases);
  select_queue(true);
  registers_.write(reg::CP_MEC_RS64_PRGRM_CNTR_START, uint32_t(first_instruction >> 2));
  registers_.write(reg::CP_MEC_RS64_PRGRM_CNTR_START_HI, uint32_t(first_instruction >> 34));
  select_queue(false);
  const uint32_t control = registers_.read(reg::CP_MEC_RS64_CNTL);
  registers_.write(reg::CP_MEC_RS64_CNTL, control | kPipe0Reset);
  registers_.write(reg::CP_MEC_RS64_CNTL, (control & ~(kPipe0Reset | kHalt)) | kPipe0Active);
  pause_ms(50);
}

void ComputeEngine::activate(const QueueDescriptor& descriptor) const {
  registers_.flush_writes();
  select_queue(true);
  for (uint32_t n = 0; n < kQueueRegisters; ++n) {
    GpuRegister r = reg::CP_MQD_BASE_ADDR;
    r.offset += n;
    registers_.write(r, descriptor[kFirstOfRegisters + n]);
  }
  registers_.write(reg::CP_HQD_ACTIVE, 1);
  select_queue(false);
}

void ComputeEngine::deactivate() const {
  select_queue(true);
  try {
    if (registers_.read(reg::CP_HQD_ACTIVE) & 1) {
      registers_.write(reg::CP_HQD_DEQUEUE_REQUEST, kDrainAndReset);
      registers_.write(reg::SPI_COMPUTE_QUEUE_RESET, 1);
      registers_.wait_for("the compute queue does not end", reg::CP_HQD_ACTIVE, 1, 0);
    }
  } catch (...) {
    select_queue(false);
    throw;
  }
  select_queue(false);
}

// ---- copies

void CopyEngine::write_pair(const GpuRegister& low, uint64_t value) const {
  GpuRegister high = low;
  ++high.offset;
  registers_.write(low, uint32_t(value));
  registers_.write(high, uint32_t(value >> 32));
}

void CopyEngine::write_reversed(const GpuRegister& high, uint64_t value) const {
  GpuRegister low = high;
  ++low.offset;
  registers_.write(low, uint32_t(value));
  registers_.write(high, uint32_t(value >> 32));
}

void CopyEngine::start() const {
  const auto update = [&](const GpuRegister& r, uint32_t mask, uint32_t value) {
    registers_.write(r, (registers_.read(r) & ~mask) | value);
  };
  constexpr uint32_t halt = 1, thread1_reset = 1u << 13, trap = 1;
  update(reg::SDMA0_UTCL1_CNTL, 0x1f | 3u << 9, 9 | 3u << 9);  // retries
  // Reads allocate nothing in L2, writes pass it.
  update(reg::SDMA0_UTCL1_PAGE, 0xfu << 12 | 1u << 24, 2u << 12 | 3u << 14 | 1u << 24);
  update(reg::SDMA0_F32_CNTL, halt | thread1_reset, 0);
  update(reg::SDMA0_CNTL, trap, trap);
  registers_.write(reg::DoorbellEntry2, doorbell_port(0xe, 2 * kCopyDoorbell, 4));
}

void CopyEngine::activate(const EngineQueue& q) const {
  check_queue(q);
  registers_.write(reg::SDMA0_QUEUE0_MINOR_PTR_UPDATE, 1);
  write_pair(reg::SDMA0_QUEUE0_RB_RPTR, 0);
  write_pair(reg::SDMA0_QUEUE0_RB_WPTR, 0);
  write_pair(reg::SDMA0_QUEUE0_RB_BASE, q.ring_address >> 8);
  write_reversed(reg::SDMA0_QUEUE0_RB_RPTR_ADDR_HI, q.read_pointer_address);
  write_reversed(reg::SDMA0_QUEUE0_RB_WPTR_POLL_ADDR_HI, q.write_pointer_address);
  registers_.write(reg::SDMA0_QUEUE0_DOORBELL_OFFSET, 2 * kCopyDoorbell << 2);
  registers_.write(reg::SDMA0_QUEUE0_DOORBELL, 1u << 28);
  registers_.write(reg::SDMA0_QUEUE0_MINOR_PTR_UPDATE, 0);
  // Enabled, for privileged packets; both pointers go through memory.
  const uint32_t size = uint32_t(std::bit_width(q.ring_bytes / 4)) - 1;
  registers_.write(reg::SDMA0_QUEUE0_RB_CNTL,
                   1 | size << 1 | 1u << 11 | 1u << 12 | 4u << 16 | 1u << 23);
  registers_.write(reg::SDMA0_QUEUE0_IB_CNTL, 1);
}

void CopyEngine::deactivate() const {
  constexpr uint32_t reset_sdma0 = 1u << 23;
  registers_.write(reg::SDMA0_QUEUE0_RB_CNTL, registers_.read(reg::SDMA0_QUEUE0_RB_CNTL) & ~1u);
  registers_.write(reg::SDMA0_QUEUE0_IB_CNTL, 0);
  registers_.write(reg::SDMA0_QUEUE0_DOORBELL, 0);
  registers_.write(reg::GRBM_SOFT_RESET, reset_sdma0);
  pause_ms(10);
  registers_.write(reg::GRBM_SOFT_RESET, 0);
}

}  // namespace tuff::devices::amd
