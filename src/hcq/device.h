// The five nouns: Device, Memory (memory.h), Program, Queue, Signal.
// Implemented by devices/*, used by engine. An implementation fills the pure virtuals and nothing
// else; everything that can be shared (sub-allocation, argument rings, graphs, retirement) is
// hcq's. Must never know UOps, rules, ioctls or Vulkan handles.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/target.h"
#include "hcq/command.h"
#include "hcq/memory.h"
#include "render/binary.h"

namespace tuff::os {
class DataFile;
}

namespace tuff::hcq {

// A 64-bit value that only rises. On hardware queues a word in memory, on Vulkan a timeline
// semaphore.
class Signal {
 public:
  virtual ~Signal() = default;
  virtual uint64_t value() const = 0;  // what has been reached, without blocking
  virtual bool wait(uint64_t value,
                    uint64_t timeout_ns) = 0;  // false: timed out; throws DeviceLost
  virtual void set(uint64_t value) = 0;        // from the host
};

// A kernel loaded on one device. Destroyed only after its last use has retired.
class Program {
 public:
  explicit Program(const render::Binary& b)
      : name_(b.name), symbol_(b.symbol), args_(b.args), local_(b.local) {}
  virtual ~Program() = default;
  const std::string& name() const { return name_; }
  const std::string& symbol() const { return symbol_; }  // as machines know it
  const render::ArgLayout& args() const { return args_; }
  const std::array<uint32_t, 3>& local() const { return local_; }

 private:
  std::string name_, symbol_;
  render::ArgLayout args_;
  std::array<uint32_t, 3> local_;
};

// A command list in the device's native form; made by Queue::encode, bound to that queue.
class EncodedList {
 public:
  virtual ~EncodedList() = default;
};

enum class EncodeUse : uint8_t { Once, Replay };

// An in-order stream of submissions with one timeline. Thread-safe: one lock per queue.
class Queue {
 public:
  explicit Queue(Device& d) : device_(d) {}
  virtual ~Queue() = default;
  Device& device() const { return device_; }
  // Pure with regard to the device's state: nothing runs. Throws Unsupported for a command the
  // queue cannot encode (a Wait in mid-list on Vulkan).
  virtual std::unique_ptr<EncodedList> encode(const CommandList& list, EncodeUse use) = 0;
  // Submits with one native call, after everything submitted before; `slots` fills value slots.
  // Returns the timeline value that signals completion. For EncodeUse::Replay an encoded list may
  // be submitted again once its previous value has passed; the caller sees to that. Allocates
  // nothing and records nothing for Replay lists. A Once list is kept alive by the queue until it
  // has passed.
  virtual uint64_t submit(EncodedList& list, std::span<const uint64_t> slots) = 0;
  uint64_t submit_once(std::unique_ptr<EncodedList> list, std::span<const uint64_t> slots = {});
  // Timestamps of the last finished submission of `list`, in ns of the host's monotonic clock.
  virtual std::vector<uint64_t> timestamps(EncodedList& list) = 0;
  virtual Signal& timeline() = 0;
  // Whether launch sizes may come from slots; else from memory (DispatchCmd::indirect). True of
  // queues whose launches are packets that hold their size, and cannot read it.
  virtual bool takes_group_slots() const { return false; }
  virtual uint64_t last_submitted() const = 0;
  // Rises while a list runs, in queues that know how far they are in it: one list may be a whole
  // training step.
  virtual uint64_t progress() const { return 0; }
  // For errors: "compute queue at 7 of 9: matmul, copy", where that is known.
  virtual std::string in_flight() const { return {}; }
  // Asks the device only about values that it has not been seen to reach.
  bool passed(uint64_t value);
  // Host wait for a value; polls Device::check_status and throws DeviceLost after
  // TUFF_TIMEOUT_MS (30,000) without progress, of the timeline or in a list; of a held device after four times as
  // long.
  virtual void wait(uint64_t value);
  void wait_idle() { wait(last_submitted()); }
  // For a lost device that others may wait for (Peers::reaches): raises the timeline to `value`, so
  // that queues of other devices that wait for it go on. What had not been reached before has
  // neither passed() nor does wait() return for it. The caller has reported before that the results
  // are missing.
  void release_waiters(uint64_t value);

 protected:
  // Frees Once lists that have passed; devices call it at submit. With `all` also those that have
  // not: for destructors of queues that run no more.
  void collect(bool all = false);

 private:
  friend class Device;  // shut_down() collects
  struct Pending {
    uint64_t value;
    std::unique_ptr<EncodedList> list;
  };
  [[gnu::noinline]] void free_passed(bool all);  // under pending_mutex_
  Device& device_;
  std::vector<Pending> pending_;
  Mutex pending_mutex_;
  std::atomic<uint64_t> seen_{0};  // the timeline has been here; it may be further
  std::atomic<bool> waiters_released_{false};
};

// Identity for people and for JSON; everything `tuff devices` prints.
struct DeviceInfo {
  std::string name;         // "VULKAN:0", "CPU"
  std::string description;  // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string driver;       // "lavapipe Mesa 22.3.6"
  std::string api_version;  // "1.3.230", or empty
  std::string uuid;         // hex, or empty
  bool hardware = false;    // false for software rasterizers and the CPU
  uint64_t memory_bytes = 0;
  // How many times as long as a GPU it may take where TUFF_TIMEOUT_MS is not set.
  int64_t slowness = 1;
  std::vector<std::pair<std::string, std::string>> features;  // printed as they are
};

// Whether a device still works, and who holds up its queues. Part of a Device; thread-safe.
class Liveness {
 public:
  explicit Liveness(const Device& device) : device_(device) {}
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void require_open() {  // throws DeviceLost after Device::close()
    if (closed()) [[unlikely]]
      require_working();
  }
  void require_working();  // throws DeviceLost once it is lost
  // Between hold() and release() a thread waits elsewhere on behalf of this device's queues: that
  // they make no progress is no fault of theirs.
  void hold() { holds_.fetch_add(1, std::memory_order_acq_rel); }
  void release() { holds_.fetch_sub(1, std::memory_order_acq_rel); }
  bool held() const { return holds_.load(std::memory_order_acquire) > 0; }
  // Queues of this device wait for that value of `signal`, which the host raises when a disk has
  // read what it has to: as long as that takes they make no progress, and that is no fault. The
  // signal is always the same one, and null before it goes.
  void await_disk(const Signal* signal, uint64_t value);
  bool waits_for_disk() const;
  // For so long a queue may make no progress, held or not: TUFF_TIMEOUT_MS, unless a device is by
  // its nature slower than that (DeviceInfo::slowness).
  int64_t timeout_ms() const;

 private:
  friend class Device;
  const Device& device_;
  std::atomic<bool> lost_{false}, closed_{false};
  std::atomic<uint32_t> holds_{0};
  std::atomic<const Signal*> disk_signal_{nullptr};
  std::atomic<uint64_t> disk_value_{0};
  std::mutex mutex_;
  std::string reason_;
};

// Facet of devices that reach the memory of others of their kind.
class Peers {
 public:
  // Whether queues of this device read and write memory of the other once that has shared it, and
  // queues of both wait for timelines of the other's. Copies between the two then need no host.
  virtual bool reaches(const Device& other) const = 0;
  // Lets the queues of `to`, which reaches this device, touch the whole of that block for as long
  // as it is mapped. Cheap but for the first time.
  virtual void share(const MemoryBlock& block, Device& to) = 0;

 protected:
  ~Peers() = default;
};
bool reaches(Device& from, const Device& to);
// Peers::share(). Throws Unsupported where `to` does not reach `owner`.
void share(Device& owner, const MemoryBlock& block, Device& to);

// Facet of devices whose kernels can work on memory that others in the process own.
class Adoption {
 public:
  // Whether kernels and copies reach any memory of the process by its host address, aligned as its
  // elements are.
  virtual bool reaches_host() const { return false; }
  // Memory of the process as kernels take it: see hcq::over_host().
  virtual std::optional<ForeignMemory> over_host(void* data, size_t size_bytes) {
    return (void)data, (void)size_bytes, std::nullopt;
  }
  // The driver's own handle of the memory that holds a span, and where in it the span begins: for
  // others in the process who use the same driver. 0: there is none.
  struct NativePart {
    uint64_t handle = 0;
    size_t offset = 0;
  };
  virtual NativePart native_part(const Span& span) { return {span.block->native, span.offset}; }
  // The reverse: a block over the memory with that handle, beginning at byte `at` of it. Nothing
  // where the device does not know the handle, InvalidArgument for memory that kernels cannot have.
  struct NativeMemory : ForeignMemory {
    size_t at = 0;
  };
  virtual std::optional<NativeMemory> over_native(uint64_t handle) {
    return (void)handle, std::nullopt;
  }

 protected:
  ~Adoption() = default;
};
// Whether the device's memory is the process's.
bool reaches_host(Device& device);
// A block over memory of the process. Throws Unsupported where kernels cannot have it,
// InvalidArgument, naming the rule, for memory that is not aligned as the device wants.
ForeignMemory over_host(Device& device, void* data, size_t size_bytes);

// Facet of devices whose memory is that of files, and so outlives its owners: each allocation is a
// block of its own, of the size that was asked for, and is not used again.
class Files {
 public:
  // A block over `size_bytes` of a file. With `unchanged` reads fail if the file was written to
  // since it was opened. IoError where the file does not have the range.
  virtual ForeignMemory over_file(std::shared_ptr<const os::DataFile> file, uint64_t offset,
                                  size_t size_bytes, bool unchanged) = 0;

 protected:
  ~Files() = default;
};

class Device {
 public:
  Device();
  virtual ~Device();
  virtual const DeviceInfo& info() const = 0;
  virtual const Target& target() const = 0;
  // Raw memory floor; called by Allocator alone. map_block throws OutOfMemory.
  virtual MemoryBlock map_block(size_t size_bytes, MemoryKind kind) = 0;
  virtual void unmap_block(const MemoryBlock& block) noexcept = 0;
  // Loads kernels, in parallel where that pays; same order as given. Throws CompileError.
  virtual std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary> binaries) = 0;
  virtual Queue& compute_queue() = 0;
  // A queue for copies beside the kernels, or null. Nothing but signals orders it with the compute
  // queue. Throws Unsupported at encode for what it cannot do (a Dispatch).
  virtual Queue* copy_queue() { return nullptr; }
  // A timeline at `value`, for what one queue has to wait for from another or from the host: every
  // queue of this device takes it in WaitCmd and SignalCmd, and the host may wait for it and set
  // it. It has to outlive the submissions that name it. Throws Unsupported where queues cannot
  // wait.
  virtual std::unique_ptr<Signal> create_signal(uint64_t value = 0) = 0;
  // What not every device can do: null where this one cannot.
  virtual Peers* peers() { return nullptr; }
  virtual Adoption* adoption() { return nullptr; }
  virtual Files* files() { return nullptr; }
  // Throws DeviceLost once the device has been lost; cheap.
  virtual void check_status() {}
  // After DeviceLost, before what was in flight is destroyed: waits until nothing runs any more.
  virtual void settle() noexcept {}

  // Throws DeviceLost if declare_lost() was called, else asks check_status(). Devices call it at
  // the head of map_block, load and submit, so that later calls on a lost device fail fast.
  void fail_if_lost();
  void declare_lost(const std::string& reason) noexcept;  // sticky; the first reason stays
  // The owner of the device beneath takes it away: like declare_lost(), and memory that is mapped
  // may not be touched either.
  void close(const std::string& reason) noexcept;
  bool lost() const { return liveness_.lost(); }
  Liveness& liveness() { return liveness_; }

  Allocator& allocator();
  const std::string& name() const { return info().name; }
  // Blocking transfers between host memory and a span, through the compute queue's order: direct
  // where the span has a host pointer, else staged in bounded pieces.
  void upload(Span dst, const void* src);
  void download(Span src, void* dst);

 protected:
  // Called once by declare_lost(), before any caller sees DeviceLost: callers may then destroy what
  // the queue still names (signals, lists), so a device that can stop touching them does so here.
  virtual void on_lost() noexcept {}
  // Devices call this first in their destructor: waits for the queues and frees all memory.
  void shut_down() noexcept;

 private:
  std::unique_ptr<Allocator> allocator_;
  Liveness liveness_{*this};
};

// As Device::upload(), of what `fill` puts into memory of the host, piece by piece and in order;
// while one is filled the device copies the one before it.
using FillPiece = std::function<void(size_t offset, std::span<std::byte> piece)>;
void upload_pieces(Device& device, Span dst, size_t piece_bytes, const FillPiece& fill);

// For a device whose driver does not work in a child of fork(): there the fork itself closes it, so
// that users are told at once. Call it once the device is complete; shut_down() takes it back.
void close_in_children(Device& device);

// Whether dispatches have to say what their blocks' addresses stand for: Command::buffers.
inline bool names_buffers(const Device& d) { return !d.target().features.device_address; }

}  // namespace tuff::hcq
