// Buffer: typed memory on one device behind a graph's Buffer node. Allocated at first use, freed
// when the device has passed its last use. A view shares another Buffer's memory at a byte offset.
// Or it lies over memory of somebody else, who gets it back then.
// Called by engine and tensor. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device.h"
#include "engine/known_integers.h"
#include "engine/outcome.h"
#include "ir/uop.h"

namespace tuff::engine {

class GroupUse;
class Reading;

// Memory of the process that somebody else owns.
struct HostMemory {
  void* data = nullptr;
  std::function<void()> release = {};  // see hcq::Allocator::adopt
  bool read_only = false;
  Origin origin = {};  // of a mapped file, which may fail at any time: for as long as it is there
};

// A part of a block that the device made over memory of somebody else.
struct LentMemory {
  hcq::MemoryBlock block;
  size_t offset = 0;
  std::function<void()> release = {};  // also tells the device that the block has ended
  bool read_only = false;
};

// A range of a file, for a device of files.
struct FileRange {
  std::shared_ptr<const os::DataFile> file;
  uint64_t offset = 0;
  bool unchanged = false;  // reads fail if somebody has written to the file since it was opened
};

class Buffer;

// What a Buffer holds once it is needed: another Buffer's bytes, of a file, or what somebody reads,
// on any thread.
struct Contents {
  // Fills piece after piece, from the front to the back; all but the last are multiples of 8 bytes.
  using Reader = std::function<void(std::span<std::byte> piece)>;
  Ref<Buffer> source = {};
  std::function<Reader()> open = {};  // where there is no source
  Reader begin() const;               // of either; both have to outlive it
};

class Buffer : public ir::Storage {
 public:
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count);
  // Zero-copy view of `count` elements at byte_offset of base; keeps base alive.
  Buffer(Ref<Buffer> base, DType dtype, int64_t count, uint64_t byte_offset);
  // Over memory of somebody else, on a device that adopts it; the contents are not touched.
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count, HostMemory memory);
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count, LentMemory memory);
  // Over a part of a file, on a device of files.
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count, FileRange range);
  // Memory that is allocated and filled when it is first used, beside other work where the host
  // reaches it and queues can wait. A failure is an IoError for whoever waits for it or for what
  // was made of it, and it is tried again at the next use.
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count, Contents contents);
  ~Buffer() override;

  Device& on() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  uint64_t size_bytes() const { return uint64_t(count) * tuff::size_bytes(dtype); }
  // Allocates memory; throws OutOfMemory. The compute queue and last_use() come after what is read
  // into it meanwhile.
  hcq::Span span();
  bool allocated() const;
  // Has contents that nobody has begun to read, or that could not be read.
  bool deferred() const;
  // Those contents, for who wants the bytes and no memory; null for a view, and once they were
  // read.
  std::shared_ptr<const Contents> unread() const;
  const Buffer& root() const { return base_ ? *base_ : *this; }
  Buffer& root() { return base_ ? *base_ : *this; }
  uint64_t byte_offset() const { return offset_; }
  // Nobody writes it: who owns the memory has forbidden it.
  bool read_only() const { return root().read_only_; }
  // Memory of a mapped file: read-only, and whoever wants to write gets a copy.
  bool mapped() const { return bool(root().mapped_); }

  // Of all of root()'s elements; forgotten by every write that this class is told of.
  KnownIntegers& known_integers() { return root().known_; }

  // Blocking copies from and to host memory of size_bytes(), ordered after everything submitted
  // that touches the buffer. No allocation where the memory has a host pointer. copyout throws
  // what verify() does.
  void copyin(const void* src);
  void copyout(void* dst);
  // Records that the memory is touched until the device's compute queue has passed
  // `timeline_value`: whatever else touches it (a copy queue, a thread that copies between devices)
  // has a submission of the compute queue wait for it.
  void used_until(uint64_t timeline_value);
  uint64_t last_use() const;
  // What the contents depend on beyond this device. Kept per allocation: of a part that is written
  // the whole depends on it too.
  Origin origin();
  bool has_origin() const { return root().has_origin_.load(std::memory_order_acquire); }
  // Whether there is any such memory in the process.
  static bool any_has_origin() { return with_origin_.load(std::memory_order_acquire) != 0; }
  void written_from(const Origin& origin);
  // What written_from() told of is done once the compute queue has passed that value.
  void written_until(uint64_t timeline_value);
  // After everything that touches it was waited for: throws DeviceLost naming the other device
  // where one that the contents come from was lost, IoError where a file was damaged before the
  // contents were known to be right.
  void verify();

 private:
  friend class GroupUse;
  friend class ContentsReader;
  [[gnu::noinline]] void allocate();             // under mutex_
  [[gnu::noinline]] void order_after_reading();  // the same
  void forget_reading();                         // the same; if it is over
  void allocate_empty();
  void let_go() noexcept;
  void set_origin(const Origin& origin);  // under mutex_ of this root
  static std::atomic<uint64_t> with_origin_;
  std::shared_ptr<Device> device_;
  Ref<Buffer> base_;
  uint64_t offset_ = 0;
  bool read_only_ = false;
  Origin mapped_;  // HostMemory's
  mutable std::mutex mutex_;
  hcq::Span span_;
  std::shared_ptr<const Contents> contents_;  // under mutex_; null once they were read
  std::shared_ptr<Reading> reading_;          // the same: they are on their way
  bool ordered_ = false;                      // the compute queue waits for that
  std::atomic<uint64_t> last_use_{0};
  std::vector<const GroupUse*> groups_;  // under mutex_
  std::atomic<bool> in_groups_{false};
  Origin origin_;                        // under mutex_
  uint64_t written_until_ = UINT64_MAX;  // the same
  std::atomic<bool> has_origin_{false};
  KnownIntegers known_;
};

// Reads what was not read yet, of all of them together: whoever is about to use them. Waits where
// the host does not reach memory, or queues cannot wait.
void read_contents(std::span<const Ref<Buffer>> buffers);

// The last use of memory that is always used together, as by the replays of a captured graph: one
// mark instead of one for each buffer, which the replay before has thrown out of the caches.
class GroupUse {
 public:
  explicit GroupUse(std::vector<Ref<Buffer>> members);  // of one device; kept alive
  ~GroupUse();                                          // members keep the mark
  GroupUse(const GroupUse&) = delete;
  GroupUse& operator=(const GroupUse&) = delete;
  const std::vector<Ref<Buffer>>& members() const { return members_; }
  void used_until(uint64_t timeline_value);  // of every member
  uint64_t last_use() const { return last_use_.load(std::memory_order_acquire); }

 private:
  std::vector<Ref<Buffer>> members_;  // one per allocation
  std::atomic<uint64_t> last_use_{0};
};

}  // namespace tuff::engine
