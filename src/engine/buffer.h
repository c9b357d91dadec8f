// Buffer: typed memory on one device behind a graph's Buffer node. It is allocated at first use and
// freed when the device has passed its last use; or it is a view of another Buffer, or lies over
// memory that is not the device's own. Called by engine and tensor. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "engine/device.h"
#include "engine/known_integers.h"
#include "engine/uses.h"
#include "ir/uop.h"

namespace tuff::engine {

class Buffer;
class Reading;

// What a Buffer holds once it is needed: another Buffer's bytes, of a file, or what a function
// gives, on any thread.
struct Contents {
  // Fills piece after piece, from the front to the back; all but the last are multiples of 8 bytes.
  using Reader = std::function<void(std::span<std::byte> piece)>;
  Ref<Buffer> source = {};
  std::function<Reader()> open = {};  // where there is no source
  Reader begin() const;               // of either; both have to outlive it
  void fill(hcq::Device& device, const hcq::Span& to) const;  // not empty
};

class Buffer : public ir::Storage {
 public:
  static Ref<Buffer> make(std::shared_ptr<Device> device, DType dtype, int64_t count);
  // Zero-copy view of `count` elements at byte_offset of `of`, which it keeps alive.
  static Ref<Buffer> view(const Ref<Buffer>& of, DType dtype, int64_t count,
                          uint64_t byte_offset = 0);
  // Over memory that the device's kernels reach; what is in it is not touched. `origin`: of a
  // mapped file, which may fail for as long as the memory is there.
  static Ref<Buffer> adopted(std::shared_ptr<Device> device, DType dtype, int64_t count,
                             hcq::ForeignMemory memory, const Origin& origin = {});
  // Memory that is allocated and filled when it is first used, beside other work where the host
  // reaches it and queues can wait. A failure is an IoError for whatever waits for it or for what
  // was made of it, and it is tried again at the next use.
  static Ref<Buffer> filled_from(std::shared_ptr<Device> device, DType dtype, int64_t count,
                                 Contents contents);
  ~Buffer() override;

  Device& on() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  uint64_t size_bytes() const { return uint64_t(count) * tuff::size_bytes(dtype); }
  // Allocates memory; throws OutOfMemory. The compute queue and Uses::last() come after what is
  // read into it meanwhile.
  hcq::Span span();
  bool allocated() const;
  // Has contents that nothing has begun to read, or that could not be read.
  bool deferred() const;
  // Those contents, for callers that want the bytes and no memory; null for a view, and once they
  // were read.
  std::shared_ptr<const Contents> unread() const;
  // The Buffer whose memory it is.
  const Buffer& root() const {
    const View* v = std::get_if<View>(&backing_);
    return v ? *v->base : *this;
  }
  Buffer& root() {
    View* v = std::get_if<View>(&backing_);
    return v ? *v->base : *this;
  }
  uint64_t byte_offset() const {
    const View* v = std::get_if<View>(&backing_);
    return v ? v->offset : 0;
  }
  // Nothing writes it: the owner of the memory has forbidden it.
  bool read_only() const {
    const Foreign* f = std::get_if<Foreign>(&root().backing_);
    return f && f->read_only;
  }
  // Memory of a mapped file: read-only, and what would write it gets a copy.
  bool mapped() const { return root().uses_.is_bound(); }

  // Known of all elements of root(); forgotten by every write that this class is told of.
  KnownIntegers& known_integers() { return root().known_; }
  Uses& uses() { return root().uses_; }
  // Its elements are written from contents that depend on `origin`.
  void written_from(const Origin& origin);
  // Blocking copies from and to host memory of size_bytes(), ordered after everything submitted
  // that touches the buffer. No allocation where the memory has a host pointer. copyout throws
  // what verify() does.
  void copyin(const void* src);
  void copyout(void* dst);
  // After everything that touches it was waited for: throws DeviceLost naming the other device
  // where one that the contents come from was lost, IoError where a file was damaged before the
  // contents were known to be right.
  void verify();

 private:
  friend class ContentsReader;
  struct Own {};
  struct View {
    Ref<Buffer> base;
    uint64_t offset;
  };
  struct Foreign {
    bool read_only;
  };
  struct Deferred {  // all under mutex_
    std::shared_ptr<const Contents> contents;  // null once they were read
    std::shared_ptr<Reading> reading;          // they are on their way
    bool ordered;                              // the compute queue waits for that
    void order(Uses& uses);
    void forget_if_read();
  };
  using Backing = std::variant<Own, View, Foreign, Deferred>;  // the same one for life

  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t count, Backing backing);
  [[gnu::noinline]] void allocate();  // under mutex_, as the next two
  void allocate_empty();
  void free_memory() noexcept;
  // What replays read, side by side so that it comes to few lines of memory.
  std::shared_ptr<Device> device_;
  Backing backing_;
  std::atomic<bool> settled_{false};  // span_ is there for good, and nothing is read into it
  hcq::Span span_;
  KnownIntegers known_;
  Uses uses_;
  mutable std::mutex mutex_;
};

// Reads what was not read yet, of all of them together: for callers that are about to use them.
// Waits where the host does not reach memory, or queues cannot wait.
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
  void until(uint64_t timeline_value);  // of every member

 private:
  std::vector<Ref<Buffer>> members_;  // one per allocation
  std::atomic<uint64_t> last_{0};
};

}  // namespace tuff::engine
