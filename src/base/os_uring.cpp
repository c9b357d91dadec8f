// os_transfer.h: requests by an io_uring, through the kernel's own interface (io_uring_setup(2),
// io_uring_enter(2)): two rings in memory shared with it, a tail that we move and a head that it
// moves, and the other way round for completions.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/os_transfer.h"

#if __has_include(<linux/io_uring.h>) && defined(__NR_io_uring_setup)
#include <linux/io_uring.h>
#define TUFF_HAS_URING 1
#endif

namespace tuff::os {

#ifdef TUFF_HAS_URING
namespace {

class Mapping {
 public:
  ~Mapping() {
    if (data_) ::munmap(data_, size_);
  }
  bool map(int fd, size_t size, uint64_t offset) {
    void* p =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, off_t(offset));
    if (p == MAP_FAILED) return false;
    // A child that went on with its parent's ring would take away its completions.
    ::madvise(p, size, MADV_DONTFORK);
    data_ = p;
    size_ = size;
    return true;
  }
  template <class T>
  T* at(uint32_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + offset);
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

uint32_t acquire(uint32_t* p) { return std::atomic_ref(*p).load(std::memory_order_acquire); }
void release(uint32_t* p, uint32_t v) { std::atomic_ref(*p).store(v, std::memory_order_release); }

class Uring final : public RequestQueue {
 public:
  ~Uring() override {
    if (fd_ >= 0) ::close(fd_);
  }
  bool open(std::string& why) {
    io_uring_params p{};
    fd_ = int(::syscall(__NR_io_uring_setup, kSlots, &p));
    if (fd_ < 0) {
      why = fmt::format("io_uring_setup: {}", std::strerror(errno));
      return false;
    }
    if (!map(p) || !reads_and_writes()) {
      why = "io_uring: this kernel's has no reads and writes of plain memory (Linux 5.6 has)";
      return false;
    }
    return true;
  }

  void push(const Request& r) override {
    const uint32_t tail = *sq_tail_, index = tail & sq_mask_;
    io_uring_sqe& e = sqes_.at<io_uring_sqe>(0)[index];
    e = {};
    e.opcode = r.write ? IORING_OP_WRITE : IORING_OP_READ;
    e.fd = r.fd;
    e.off = r.offset;
    e.addr = reinterpret_cast<uint64_t>(r.memory);
    e.len = r.size_bytes;
    e.user_data = r.slot;
    sq_array_[index] = index;
    release(sq_tail_, tail + 1);
    unsubmitted_++;
  }

  Completion pop() override {
    for (;;) {
      const uint32_t head = *cq_head_;
      const bool empty = head == acquire(cq_tail_);
      if (unsubmitted_ > 0 || empty) enter(empty);
      if (empty && head == acquire(cq_tail_)) continue;
      const io_uring_cqe& c = cqes_[head & cq_mask_];
      const Completion done{uint32_t(c.user_data), c.res};
      release(cq_head_, head + 1);
      return done;
    }
  }

 private:
  bool map(const io_uring_params& p) {
    const size_t sq_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    const size_t cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe);
    if (!(p.features & IORING_FEAT_SINGLE_MMAP)) return false;
    if (!rings_.map(fd_, std::max(sq_bytes, cq_bytes), IORING_OFF_SQ_RING)) return false;
    if (!sqes_.map(fd_, p.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES)) return false;
    sq_tail_ = rings_.at<uint32_t>(p.sq_off.tail);
    sq_mask_ = *rings_.at<uint32_t>(p.sq_off.ring_mask);
    sq_array_ = rings_.at<uint32_t>(p.sq_off.array);
    cq_head_ = rings_.at<uint32_t>(p.cq_off.head);
    cq_tail_ = rings_.at<uint32_t>(p.cq_off.tail);
    cq_mask_ = *rings_.at<uint32_t>(p.cq_off.ring_mask);
    cqes_ = rings_.at<io_uring_cqe>(p.cq_off.cqes);
    return true;
  }

  bool reads_and_writes() const {
    constexpr uint32_t kOps = 64;
    alignas(io_uring_probe)
        std::byte memory[sizeof(io_uring_probe) + kOps * sizeof(io_uring_probe_op)] = {};
    auto* probe = reinterpret_cast<io_uring_probe*>(memory);
    if (::syscall(__NR_io_uring_register, fd_, IORING_REGISTER_PROBE, probe, kOps) != 0)
      return false;
    const auto has = [&](uint32_t op) {
      return op < probe->ops_len && (probe->ops[op].flags & IO_URING_OP_SUPPORTED);
    };
    return has(IORING_OP_READ) && has(IORING_OP_WRITE);
  }

  // Hands over what was pushed and waits for a completion if there is none. Where the kernel has no
  // memory or is interrupted it is asked again: what is in flight fills memory of somebody.
  void enter(bool wait) {
    const long n = ::syscall(__NR_io_uring_enter, fd_, unsubmitted_, wait ? 1 : 0,
                             wait ? IORING_ENTER_GETEVENTS : 0, nullptr, 0);
    if (n >= 0) {
      unsubmitted_ -= uint32_t(n);
      return;
    }
    if (errno == EAGAIN || errno == EBUSY) return std::this_thread::yield();
    TUFF_CHECK(errno == EINTR, "io_uring_enter: {}", std::strerror(errno));
  }

  int fd_ = -1;
  Mapping rings_, sqes_;
  uint32_t *sq_tail_ = nullptr, *sq_array_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  uint32_t sq_mask_ = 0, cq_mask_ = 0;
  io_uring_cqe* cqes_ = nullptr;
  uint32_t unsubmitted_ = 0;
};

}  // namespace

std::unique_ptr<RequestQueue> make_uring(std::string& why) {
  auto ring = std::make_unique<Uring>();
  if (!ring->open(why)) return nullptr;
  return ring;
}
#else
std::unique_ptr<RequestQueue> make_uring(std::string& why) {
  why = "tuff was built without the kernel's header linux/io_uring.h (Debian: linux-libc-dev)";
  return nullptr;
}
#endif

}  // namespace tuff::os
