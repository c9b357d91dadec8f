#include "base/os_transfer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/arith.h"
#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::os {
namespace {

constexpr uint32_t kBounceSlots = 8;
constexpr uint64_t kBounceBytes = Transfers::kPieceBytes + 2 * 4096;
constexpr uint64_t kDirectFrom = 256 << 10;  // shorter transfers gain from the kernel's read-ahead
constexpr size_t kIdleLanes = 4;
constexpr uint32_t kNoBounce = UINT32_MAX;

uint64_t round_down(uint64_t n, uint64_t to) { return n / to * to; }

const char* remedy(int error) {
  switch (error) {
    case ENOSPC: return "; make room on the disk";
    case EDQUOT: return "; the quota is used up: make room";
    case EFBIG: return "; files may not be that long here: raise the limit (ulimit -f)";
    case EIO: return "; the disk or the network below it has failed: check it, use a copy";
    case ESTALE: return "; a server has lost it: open it again";
    case EFAULT: return "; the memory is a mapped file's that has become shorter: load that again";
    default: return "";
  }
}

}  // namespace

struct Transfers::Lane {
  explicit Lane(std::unique_ptr<RequestQueue> q) : queue(std::move(q)), process(::getpid()) {}
  ~Lane() {
    if (bounce) unmap_pages(bounce, kBounceSlots * kBounceBytes);
  }
  // Null: there is no memory for it.
  std::byte* bounce_memory() {
    if (!bounce) bounce = static_cast<std::byte*>(map_pages(kBounceSlots * kBounceBytes));
    return bounce;
  }
  std::unique_ptr<RequestQueue> queue;
  std::byte* bounce = nullptr;
  int process;  // children share the kernel's ring, and have no threads
};

// One run(): pieces wait, are in flight in a slot, and are asked for again where too little came.
class TransferRun {
 public:
  TransferRun(Transfers& owner, Transfers::Lane& lane, std::span<const Transfer> transfers)
      : owner_(owner), lane_(lane), transfers_(transfers) {
    for (uint32_t i = RequestQueue::kSlots; i-- > 0;) free_.push_back(i);
    for (uint32_t i = kBounceSlots; i-- > 0;) free_bounces_.push_back(i);
  }

  void run() {
    for (;;) {
      while (start_next()) {}
      if (in_flight_ == 0) break;
      finish(lane_.queue->pop());
    }
    if (!failure_.empty()) fail<IoError>("{}", failure_);
  }

  TransferStats stats;

 private:
  struct Piece {
    const Transfer* transfer = nullptr;
    uint64_t offset = 0;
    std::byte* memory = nullptr;
    uint64_t size_bytes = 0;
    bool direct = false;
    uint32_t bounce = kNoBounce;
    uint64_t bounce_offset = 0;  // in the file, of the bounce's first byte
  };

  bool start_next() {
    if (free_.empty() || !failure_.empty()) return false;
    Piece piece;
    if (!again_.empty()) {
      piece = again_.front();
      if (!place(piece)) return false;
      again_.pop_front();
    } else {
      if (!next_piece(piece)) return false;
      if (!place(piece)) return false;
      at_ += piece.size_bytes;
    }
    start(piece);
    return true;
  }

  // What is left of the transfers, from its front; at_ stays.
  bool next_piece(Piece& piece) {
    while (next_ < transfers_.size() && at_ == transfers_[next_].size_bytes) {
      next_++;
      at_ = 0;
    }
    if (next_ == transfers_.size()) return false;
    const Transfer& t = transfers_[next_];
    const uint64_t begin = t.offset + at_;
    const uint64_t end =
        std::min(round_down(begin, Transfers::kPieceBytes) + Transfers::kPieceBytes,
                 t.offset + t.size_bytes);
    piece = {.transfer = &t, .offset = begin, .memory = t.memory + at_, .size_bytes = end - begin};
    piece.direct = !t.write && t.size_bytes >= kDirectFrom && t.file->direct_descriptor() >= 0 &&
                   !t.file->is_cached(begin, piece.size_bytes);
    return true;
  }

  // Gives a direct piece aligned memory; false: there is none free, wait.
  bool place(Piece& p) {
    if (!p.direct) return true;
    const DataFile& file = *p.transfer->file;
    const uint64_t step = file.offset_alignment();
    if (p.offset % step == 0 && p.size_bytes % step == 0 &&
        reinterpret_cast<uintptr_t>(p.memory) % file.memory_alignment() == 0)
      return true;
    if (lane_.bounce_memory() == nullptr) {
      p.direct = false;
      return true;
    }
    if (free_bounces_.empty()) return false;
    p.bounce = free_bounces_.back();
    free_bounces_.pop_back();
    p.bounce_offset = round_down(p.offset, step);
    return true;
  }

  void start(const Piece& p) {
    const uint32_t slot = free_.back();
    free_.pop_back();
    pieces_[slot] = p;
    const DataFile& file = *p.transfer->file;
    const int direct = p.direct ? file.direct_descriptor() : -1;
    Request r{direct >= 0 ? direct : file.descriptor(),
              p.offset,
              p.memory,
              uint32_t(p.size_bytes),
              p.transfer->write,
              slot};
    if (p.bounce != kNoBounce) {
      r.offset = p.bounce_offset;
      r.memory = lane_.bounce + p.bounce * kBounceBytes;
      r.size_bytes =
          uint32_t(align_up(p.offset + p.size_bytes - p.bounce_offset, file.offset_alignment()));
    }
    requests_[slot] = r;
    lane_.queue->push(r);
    in_flight_++;
    stats.requests++;
    stats.most_in_flight = std::max(stats.most_in_flight, in_flight_);
  }

  void finish(Completion c) {
    Piece p = pieces_[c.slot];
    const Request& r = requests_[c.slot];
    if (owner_.tamper) c.result = owner_.tamper(r, c.result);
    free_.push_back(c.slot);
    in_flight_--;
    if (p.bounce != kNoBounce) {
      if (c.result > 0) c.result = unbounce(p, uint64_t(c.result));
      free_bounces_.push_back(p.bounce);
      p.bounce = kNoBounce;
    }
    if (c.result < 0) return failed(p, int(-c.result));
    if (p.direct) stats.direct_bytes += uint64_t(c.result);
    const uint64_t done = std::min(uint64_t(c.result), p.size_bytes);
    stats.bytes += done;
    if (done == p.size_bytes) return;
    p.offset += done;
    p.memory += done;
    p.size_bytes -= done;
    // Past the end of a file direct requests are refused by some file systems: the cache knows.
    if (done == 0 && !p.direct) return ended(p);
    p.direct = false;
    again_.push_back(p);
  }

  // To where the piece belongs; how much of it came.
  int64_t unbounce(const Piece& p, uint64_t got) {
    const uint64_t lead = p.offset - p.bounce_offset;
    if (got <= lead) return 0;
    const uint64_t size = std::min(got - lead, p.size_bytes);
    std::memcpy(p.memory, lane_.bounce + p.bounce * kBounceBytes + lead, size);
    stats.bounced_bytes += size;
    return int64_t(size);
  }

  void failed(Piece& p, int error) {
    const bool refused = p.direct && (error == EINVAL || error == EOPNOTSUPP);
    if (refused) p.transfer->file->direct_refused();
    if (refused || error == EINTR || error == EAGAIN) {
      p.direct = false;
      again_.push_back(p);
      return;
    }
    tell(fmt::format("cannot {} '{}' at byte {} ({} bytes): {}{}",
                     p.transfer->write ? "write" : "read", p.transfer->file->path(), p.offset,
                     p.size_bytes, std::strerror(error), remedy(error)));
  }

  void ended(const Piece& p) {
    const Transfer& t = *p.transfer;
    if (t.write)
      return tell(fmt::format("cannot write '{}' at byte {} ({} bytes): the system takes none",
                              t.file->path(), p.offset, p.size_bytes));
    const uint64_t wanted = t.offset + t.size_bytes, end = std::min(t.file->size_bytes(), wanted);
    tell(
        fmt::format("cannot read '{}': it ends at byte {}, {} bytes early; it has become shorter: "
                    "load it again",
                    t.file->path(), end, wanted - end));
  }

  void tell(std::string text) {
    if (failure_.empty()) failure_ = std::move(text);
  }

  Transfers& owner_;
  Transfers::Lane& lane_;
  std::span<const Transfer> transfers_;
  size_t next_ = 0;
  uint64_t at_ = 0;  // in transfers_[next_]
  std::deque<Piece> again_;
  Piece pieces_[RequestQueue::kSlots];
  Request requests_[RequestQueue::kSlots];
  std::vector<uint32_t> free_, free_bounces_;
  uint32_t in_flight_ = 0;
  std::string failure_;
};

namespace {

Transfers::Backend chosen_backend(std::string& why) {
  const std::string asked = env_text(Env::TUFF_IO);
  if (asked == "threads") {
    why = "TUFF_IO=threads";
    return Transfers::Backend::Threads;
  }
  if (make_uring(why)) return Transfers::Backend::Uring;
  if (!asked.empty()) fail<Unsupported>("TUFF_IO=uring: {}", why);
  return Transfers::Backend::Threads;
}

}  // namespace

Transfers::Transfers() : backend_(chosen_backend(why_)) {}
Transfers::Transfers(Backend backend) : backend_(backend) {}
Transfers::~Transfers() = default;

std::unique_ptr<Transfers::Lane> Transfers::take() {
  std::vector<std::unique_ptr<Lane>> of_parent;
  {
    std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      std::unique_ptr<Lane> lane = std::move(idle_.back());
      idle_.pop_back();
      if (lane->process == ::getpid()) return lane;
      of_parent.push_back(std::move(lane));
    }
  }
  // Their threads are not here to be joined.
  for (auto& lane : of_parent) lane->queue.release();
  std::unique_ptr<RequestQueue> queue;
  std::string why;
  if (backend_ == Backend::Uring) queue = make_uring(why);
  if (!queue) queue = make_request_threads();
  return std::make_unique<Lane>(std::move(queue));
}

void Transfers::give_back(std::unique_ptr<Lane> lane) noexcept {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleLanes) idle_.push_back(std::move(lane));
}

void Transfers::run(std::span<const Transfer> given) {
  for (const Transfer& t : given)
    if (t.write) t.file->require_writable();
  std::unique_ptr<Lane> lane = take();
  TransferRun one(*this, *lane, given);
  const auto end = [&] {
    give_back(std::move(lane));
    std::lock_guard lock(mutex_);
    stats_.requests += one.stats.requests;
    stats_.bytes += one.stats.bytes;
    stats_.direct_bytes += one.stats.direct_bytes;
    stats_.bounced_bytes += one.stats.bounced_bytes;
    stats_.most_in_flight = std::max(stats_.most_in_flight, one.stats.most_in_flight);
  };
  try {
    one.run();
  } catch (const IoError&) {
    end();
    throw;
  }
  end();
}

TransferStats Transfers::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

// Never destroyed: threads that still read when the process ends need it.
Transfers& transfers() {
  static Transfers& t = *std::make_unique<Transfers>().release();
  return t;
}

}  // namespace tuff::os
