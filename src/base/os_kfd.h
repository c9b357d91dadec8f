// /dev/kfd: the calls of Linux's amdkfd that are used, as numbers and structs. Ours, since the C
// library's header is older than some of them and needs libdrm's. Included by devices/amd/kfd and
// emu/amd alone. The kernel tells calls by number and takes shorter structs than its own.
// Source: Linux include/uapi/linux/kfd_ioctl.h (interface 1.17; unchanged since 1.1 where nothing
// else is said).
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace tuff::os::kfd {

struct GetVersion {
  uint32_t major_version, minor_version;  // out
};

enum class QueueType : uint32_t { Compute = 0, Sdma = 1, ComputeAql = 2 };
inline constexpr uint32_t kMaxQueuePercentage = 100, kMaxQueuePriority = 15;
struct CreateQueue {
  uint64_t ring_base_address;
  uint64_t write_pointer_address, read_pointer_address;
  uint64_t doorbell_offset;  // out: for mmap of the file; its low bits are the place in the pages
  uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
  uint32_t queue_id;  // out
  uint64_t eop_buffer_address, eop_buffer_size;
  uint64_t ctx_save_restore_address;
  uint32_t ctx_save_restore_size, ctl_stack_size;
};
struct DestroyQueue {
  uint32_t queue_id, pad;
};

struct GetClockCounters {
  uint64_t gpu_clock_counter, cpu_clock_counter, system_clock_counter;  // out; the latter in ns,
  uint64_t system_clock_freq;  // out            of CLOCK_MONOTONIC_RAW and of CLOCK_BOOTTIME
  uint32_t gpu_id, pad;
};

struct DeviceApertures {
  uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
  uint32_t gpu_id, pad;
};
struct GetProcessAperturesNew {
  uint64_t apertures_ptr;  // of `num_of_nodes` DeviceApertures
  uint32_t num_of_nodes, pad;
};

enum class EventType : uint32_t { Signal = 0, HwException = 3, Memory = 8 };
struct CreateEvent {
  uint64_t event_page_offset;   // in: handle of the event page, with the first event; out: mmap's
  uint32_t event_trigger_data;  // out
  uint32_t event_type, auto_reset, node_id;
  uint32_t event_id, event_slot_index;  // out
};
struct DestroyEvent {
  uint32_t event_id, pad;
};
struct SetEvent {
  uint32_t event_id, pad;
};
inline constexpr uint32_t kSignalEventLimit = 4096;  // slots of 8 bytes in the event page

struct MemoryException {
  uint32_t not_present, read_only, no_execute, imprecise;
  uint64_t address;
  uint32_t gpu_id;
  uint32_t error_type;  // 0: none of memory itself, 1: ECC, 2: poison consumed, 3: GPU hang
};
struct HwException {
  uint32_t reset_type;   // 0: the whole GPU, 1: one engine
  uint32_t reset_cause;  // 0: hang, 1: ECC
  uint32_t memory_lost, gpu_id;
};
struct EventData {
  union {
    MemoryException memory_exception;
    HwException hw_exception;
  };
  uint64_t ext;
  uint32_t event_id, pad;  // event_id in, the rest out
};
enum class WaitResult : uint32_t { Complete = 0, Timeout = 1, Fail = 2 };
struct WaitEvents {
  uint64_t events_ptr;
  uint32_t num_events, wait_for_all;
  uint32_t timeout_ms;
  uint32_t wait_result;  // out
};

struct AcquireVm {
  uint32_t drm_fd, gpu_id;
};

enum MemoryFlags : uint32_t {
  kVram = 1u << 0,
  kGtt = 1u << 1,
  kUserptr = 1u << 2,
  kDoorbell = 1u << 3,
  kMmioRemap = 1u << 4,
  kWritable = 1u << 31,
  kExecutable = 1u << 30,
  kPublic = 1u << 29,
  kNoSubstitute = 1u << 28,
  kAqlQueueMem = 1u << 27,
  kCoherent = 1u << 26,
  kUncached = 1u << 25,
};
struct AllocMemory {
  uint64_t va_addr, size;
  uint64_t handle;       // out
  uint64_t mmap_offset;  // out: for mmap of the render node; in: a user pointer
  uint32_t gpu_id, flags;
};
struct FreeMemory {
  uint64_t handle;
};
struct MapMemory {  // and unmap
  uint64_t handle, device_ids_array_ptr;
  uint32_t n_devices, n_success;
};
struct AvailableMemory {  // since 1.9
  uint64_t available;     // out
  uint32_t gpu_id, pad;
};

struct RuntimeEnable {  // since 1.14
  uint64_t r_debug;     // address of the process's r_debug, which lists loaded code (link.h)
  uint32_t mode_mask;   // bit 0: enable, bit 1: keep TTMPs
  uint32_t capabilities_mask;
};

inline constexpr unsigned long kGetVersion = _IOR('K', 0x01, GetVersion),
                               kCreateQueue = _IOWR('K', 0x02, CreateQueue),
                               kDestroyQueue = _IOWR('K', 0x03, DestroyQueue),
                               kGetClockCounters = _IOWR('K', 0x05, GetClockCounters),
                               kCreateEvent = _IOWR('K', 0x08, CreateEvent),
                               kDestroyEvent = _IOW('K', 0x09, DestroyEvent),
                               kSetEvent = _IOW('K', 0x0a, SetEvent),
                               kWaitEvents = _IOWR('K', 0x0c, WaitEvents),
                               kGetProcessAperturesNew = _IOWR('K', 0x14, GetProcessAperturesNew),
                               kAcquireVm = _IOW('K', 0x15, AcquireVm),
                               kAllocMemory = _IOWR('K', 0x16, AllocMemory),
                               kFreeMemory = _IOW('K', 0x17, FreeMemory),
                               kMapMemory = _IOWR('K', 0x18, MapMemory),
                               kUnmapMemory = _IOWR('K', 0x19, MapMemory),
                               kAvailableMemory = _IOWR('K', 0x23, AvailableMemory),
                               kRuntimeEnable = _IOWR('K', 0x25, RuntimeEnable);

}  // namespace tuff::os::kfd
