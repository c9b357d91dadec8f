// os_transfer.h: requests by an io_uring, through liburing.
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/os_transfer.h"

#ifdef TUFF_HAS_URING
#include <liburing.h>
#endif

namespace tuff::os {

#ifdef TUFF_HAS_URING
namespace {

class Uring final : public RequestQueue {
 public:
  ~Uring() override {
    if (is_open_) ::io_uring_queue_exit(&ring_);
  }
  bool open(std::string& why) {
    if (const int error = ::io_uring_queue_init(kSlots, &ring_, 0); error < 0) {
      why = fmt::format("io_uring_setup: {}", std::strerror(-error));
      return false;
    }
    is_open_ = true;
    // A child that went on with its parent's ring would take away its completions.
    if (::io_uring_ring_dontfork(&ring_) < 0 || !reads_and_writes()) {
      why = "io_uring: this kernel's has no reads and writes of plain memory (Linux 5.6 has)";
      return false;
    }
    return true;
  }

  void push(const Request& r) override {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    TUFF_CHECK(entry != nullptr, "more than {} requests", kSlots);
    if (r.write) {
      ::io_uring_prep_write(entry, r.fd, r.memory, r.size_bytes, r.offset);
    } else {
      ::io_uring_prep_read(entry, r.fd, r.memory, r.size_bytes, r.offset);
    }
    ::io_uring_sqe_set_data64(entry, r.slot);
  }

  Completion pop() override {
    io_uring_cqe* entry = nullptr;
    do {
      const bool empty = ::io_uring_cq_ready(&ring_) == 0;
      if (empty || ::io_uring_sq_ready(&ring_) > 0) enter(empty);
    } while (::io_uring_peek_cqe(&ring_, &entry) != 0);
    const Completion done{uint32_t(entry->user_data), entry->res};
    ::io_uring_cqe_seen(&ring_, entry);
    return done;
  }

 private:
  bool reads_and_writes() {
    io_uring_probe* probe = ::io_uring_get_probe_ring(&ring_);
    const bool has = probe && ::io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     ::io_uring_opcode_supported(probe, IORING_OP_WRITE);
    ::io_uring_free_probe(probe);
    return has;
  }

  // Hands over what was pushed and waits for a completion if there is none. Where the kernel has no
  // memory or is interrupted it is asked again: requests in flight fill memory of their callers.
  void enter(bool wait) {
    const int n = ::io_uring_submit_and_wait(&ring_, wait ? 1 : 0);
    if (n == -EAGAIN || n == -EBUSY) return std::this_thread::yield();
    TUFF_CHECK(n >= 0 || n == -EINTR, "io_uring_enter: {}", std::strerror(-n));
  }

  io_uring ring_{};
  bool is_open_ = false;
};

}  // namespace

std::unique_ptr<RequestQueue> make_uring(std::string& why) {
  auto ring = std::make_unique<Uring>();
  if (!ring->open(why)) return nullptr;
  return ring;
}
#else
std::unique_ptr<RequestQueue> make_uring(std::string& why) {
  why = "tuff was built without liburing (Debian: liburing-dev)";
  return nullptr;
}
#endif

}  // namespace tuff::os
