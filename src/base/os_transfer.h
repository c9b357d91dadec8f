// Transfers: bytes between files and memory, by many requests in flight. An io_uring of the kernel
// where it lets us have one, else threads that block. Called by DataFile and by the queue of DISK.
// Knows nothing of tensors or devices.
//
// Long ranges are cut at multiples of kPieceBytes of the file. What is long and not in the page
// cache is read around it (O_DIRECT): faster where it was measured, and it does not throw out what
// others have cached. Where memory and file are not aligned alike such a piece is read
// into aligned memory and copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/os_data_file.h"

namespace tuff::os {

struct Transfer {
  const DataFile* file = nullptr;
  uint64_t offset = 0;
  std::byte* memory = nullptr;  // const where it is written to the file
  uint64_t size_bytes = 0;
  bool write = false;
};

// One call to the system: what a backend is asked for.
struct Request {
  int fd = -1;
  uint64_t offset = 0;
  std::byte* memory = nullptr;
  uint32_t size_bytes = 0;
  bool write = false;
  uint32_t slot = 0;  // the caller's
};
struct Completion {
  uint32_t slot = 0;
  int64_t result = 0;  // bytes, or an errno's negative
};

// A backend with room for kSlots requests. Used by one thread at a time.
class RequestQueue {
 public:
  static constexpr uint32_t kSlots = 32;
  virtual ~RequestQueue() = default;
  virtual void push(const Request& request) = 0;
  virtual Completion pop() = 0;  // of something pushed; waits for it
};
// Null, with the reason in `why`, where the kernel has none for us.
std::unique_ptr<RequestQueue> make_uring(std::string& why);
std::unique_ptr<RequestQueue> make_request_threads();

struct TransferStats {
  uint64_t requests = 0, bytes = 0, direct_bytes = 0, bounced_bytes = 0;
  uint32_t most_in_flight = 0;
};

// Thread-safe; every run() has a backend of its own, kept for the next one.
class Transfers {
 public:
  static constexpr uint64_t kPieceBytes = 2 << 20;
  enum class Backend { Uring, Threads };
  // TUFF_IO's: io_uring, or threads with the reason in why_threads().
  Transfers();
  explicit Transfers(Backend backend);
  ~Transfers();
  Backend backend() const { return backend_; }
  const std::string& why_threads() const { return why_; }
  // Returns when all are done. If some fail, one of them throws IoError after the others have
  // ended; what they had to fill is undefined then.
  void run(std::span<const Transfer> transfers);
  TransferStats stats() const;
  // For tests: what takes the place of a completion's result.
  std::function<int64_t(const Request&, int64_t result)> tamper;

 private:
  friend class TransferRun;
  struct Lane;  // a backend and its aligned memory
  std::unique_ptr<Lane> take();
  void give_back(std::unique_ptr<Lane> lane) noexcept;

  std::string why_;
  Backend backend_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_;
  TransferStats stats_;
};

// The process's.
Transfers& transfers();

}  // namespace tuff::os
