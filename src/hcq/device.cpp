#include "hcq/device.h"

#include <algorithm>
#include <cstring>

#include "base/atomic_max.h"
#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_fork.h"
#include "hcq/launch.h"

namespace tuff::hcq {
namespace {

constexpr size_t kStagingPieceBytes = 4u << 20;
constexpr uint64_t kWaitSliceNs = 20'000'000;
// Two devices that wait for each other, one of them hung, hold each other: it has to end.
constexpr int64_t kHeldPatience = 4;

// Two halves of staging memory, so that the host fills one while the device empties the other.
class Staging {
 public:
  Staging(Device& device, MemoryKind kind, size_t total_bytes,
          size_t piece_bytes = kStagingPieceBytes)
      : device_(device),
        piece_bytes_(std::min(total_bytes, piece_bytes)),
        span_(device.allocator().allocate(2 * piece_bytes_, kind)) {}
  ~Staging() {
    device_.allocator().free(span_, {&device_.compute_queue(), std::max(values_[0], values_[1])});
  }
  size_t piece_bytes() const { return piece_bytes_; }
  Span half(size_t i, size_t size) const { return span_.sub((i & 1) * piece_bytes_, size); }
  void wait(size_t i) {
    if (values_[i & 1] > 0) device_.compute_queue().wait(values_[i & 1]);
  }
  void copy(size_t i, Span dst, Span src) {
    CommandList list;
    list.commands.push_back(copy_command(dst, src, "staging"));
    Queue& queue = device_.compute_queue();
    values_[i & 1] = queue.submit_once(queue.encode(list, EncodeUse::Once));
  }

 private:
  Device& device_;
  size_t piece_bytes_;
  Span span_;
  uint64_t values_[2] = {0, 0};
};

void copy_with_file(Device& device, const Span& span, std::byte* host, bool write) {
  const MemoryBlock block = host_block(host, span.size_bytes);
  const Span memory{&block, 0, span.size_bytes};
  CommandList list;
  list.commands.push_back(write ? copy_command(span, memory, "write")
                                : copy_command(memory, span, "read"));
  Queue& queue = device.compute_queue();
  queue.wait(queue.submit_once(queue.encode(list, EncodeUse::Once)));
}

// Devices that a fork closes in the child.
struct OpenDevices {
  std::mutex mutex;
  std::vector<Device*> devices;
};
OpenDevices& open_devices() {
  static OpenDevices& o = *std::make_unique<OpenDevices>().release();
  return o;
}

// In the child only the thread that forked holds the mutex.
void before_fork() { open_devices().mutex.lock(); }
void in_parent() { open_devices().mutex.unlock(); }
void in_child() {
  for (Device* d : open_devices().devices)
    d->close(fmt::format(
        "{}: it was opened before fork(), and drivers do not work in the child: fork before the "
        "first use of the device, or start processes anew (Python: multiprocessing's start method "
        "'spawn')",
        d->name()));
  open_devices().devices.clear();
  open_devices().mutex.unlock();
}

}  // namespace

uint64_t Queue::submit_once(std::unique_ptr<EncodedList> list, std::span<const uint64_t> slots) {
  uint64_t value = submit(*list, slots);
  std::lock_guard lock(pending_mutex_);
  pending_.push_back({value, std::move(list)});
  return value;
}

[[gnu::hot]]
void Queue::collect(bool all) {
  std::lock_guard lock(pending_mutex_);
  if (!pending_.empty()) free_passed(all);
}

void Queue::free_passed(bool all) {
  uint64_t reached = all ? UINT64_MAX : timeline().value();
  std::erase_if(pending_, [&](const Pending& p) { return p.value <= reached; });
}

[[gnu::hot]]
bool Queue::passed(uint64_t value) {
  if (seen_.load(std::memory_order_acquire) >= value) return true;
  const uint64_t now = timeline().value();
  if (waiters_released_.load(std::memory_order_acquire)) return false;
  seen_.store(now, std::memory_order_release);
  return now >= value;
}

void Queue::release_waiters(uint64_t value) {
  TUFF_CHECK(device_.lost(), "{} is not lost", device_.name());
  std::lock_guard lock(pending_mutex_);
  const uint64_t reached = timeline().value();
  if (!waiters_released_.load(std::memory_order_relaxed)) {
    seen_.store(reached, std::memory_order_release);
    waiters_released_.store(true, std::memory_order_release);
  }
  if (reached < value) timeline().set(value);
}

void Queue::wait(uint64_t value) {
  if (passed(value)) return;
  device_.fail_if_lost();
  Signal& line = timeline();
  uint64_t seen = line.value(), inside = progress(), since_ns = os::monotonic_ns();
  while (!line.wait(value, kWaitSliceNs)) {
    device_.fail_if_lost();
    uint64_t now_ns = os::monotonic_ns(), reached = line.value();
    const uint64_t now_inside = progress();
    if (reached != seen || now_inside != inside || device_.liveness().waits_for_disk()) {
      seen = reached, inside = now_inside;
      since_ns = now_ns;
      continue;
    }
    const int64_t timeout_ms = device_.liveness().timeout_ms();
    if (now_ns - since_ns < static_cast<uint64_t>(timeout_ms) * 1'000'000) continue;
    const std::string running = in_flight();
    device_.declare_lost(fmt::format(
        "{}: no progress for {} ms: timeline at {}, waiting for {} (limit: TUFF_TIMEOUT_MS){}{}",
        device_.name(), (now_ns - since_ns) / 1'000'000, reached, value,
        running.empty() ? "" : "; ", running));
    device_.fail_if_lost();
  }
  seen_.store(value, std::memory_order_release);
}

Device::Device() : allocator_(std::make_unique<Allocator>(*this)) {}
Device::~Device() = default;

void Liveness::await_disk(const Signal* signal, uint64_t value) {
  raise_to(disk_value_, value);
  disk_signal_.store(signal);
}

bool Liveness::waits_for_disk() const {
  const Signal* signal = disk_signal_.load();
  return signal && signal->value() < disk_value_.load();
}

int64_t Liveness::timeout_ms() const {
  const std::string given = env_text(Env::TUFF_TIMEOUT_MS);
  const bool usual = given == env_rows()[size_t(Env::TUFF_TIMEOUT_MS)].default_value;
  return env_int(Env::TUFF_TIMEOUT_MS) * (usual ? device_.info().slowness : 1) *
         (held() ? kHeldPatience : 1);
}

[[gnu::hot]]
void Liveness::require_working() {
  if (!lost()) return;
  std::lock_guard lock(mutex_);
  throw DeviceLost(reason_);
}

bool reaches(Device& from, const Device& to) {
  const Peers* peers = from.peers();
  return peers && peers->reaches(to);
}

void share(Device& owner, const MemoryBlock& block, Device& to) {
  if (!reaches(to, owner))
    fail<Unsupported>("{}: no other device reaches its memory, {} neither", owner.name(),
                      to.name());
  owner.peers()->share(block, to);
}

bool reaches_host(Device& device) {
  const Adoption* adoption = device.adoption();
  return adoption && adoption->reaches_host();
}

ForeignMemory over_host(Device& device, void* data, size_t size_bytes) {
  if (Adoption* adoption = device.adoption())
    if (std::optional<ForeignMemory> memory = adoption->over_host(data, size_bytes))
      return *std::move(memory);
  fail<Unsupported>("{}: its kernels cannot work on memory of the process: copy it",
                    device.name());
}

Allocator& Device::allocator() {
  TUFF_CHECK(allocator_ != nullptr, "the device is shut down");
  return *allocator_;
}

[[gnu::hot]]
void Device::fail_if_lost() {
  liveness_.require_working();
  check_status();
}

void Device::declare_lost(const std::string& reason) noexcept {
  std::lock_guard lock(liveness_.mutex_);
  if (lost()) return;
  on_lost();
  liveness_.reason_ = reason;
  liveness_.lost_.store(true, std::memory_order_release);
}

void Device::close(const std::string& reason) noexcept {
  declare_lost(reason);
  liveness_.closed_.store(true, std::memory_order_release);
}

void Device::upload(Span dst, const void* src) {
  const auto* from = static_cast<const std::byte*>(src);
  if (dst.size_bytes == 0) return;
  if (dst.block->file) return copy_with_file(*this, dst, const_cast<std::byte*>(from), true);
  if (dst.host() != nullptr) {
    compute_queue().wait_idle();
    std::memcpy(dst.host(), from, dst.size_bytes);
    return;
  }
  upload_pieces(*this, dst, kStagingPieceBytes, [&](size_t at, std::span<std::byte> piece) {
    std::memcpy(piece.data(), from + at, piece.size());
  });
}

void upload_pieces(Device& device, Span dst, size_t piece_bytes, const FillPiece& fill) {
  Staging staging(device, MemoryKind::Upload, dst.size_bytes, piece_bytes);
  size_t piece = 0;
  for (size_t at = 0; at < dst.size_bytes; at += staging.piece_bytes(), ++piece) {
    size_t size = std::min(staging.piece_bytes(), dst.size_bytes - at);
    staging.wait(piece);
    Span half = staging.half(piece, size);
    fill(at, {half.host(), size});
    staging.copy(piece, dst.sub(at, size), half);
  }
  // A queue of files tells only of the failure of what is waited for.
  if (dst.block->file) staging.wait(piece);
  device.compute_queue().wait_idle();
}

void Device::download(Span src, void* dst) {
  auto* to = static_cast<std::byte*>(dst);
  if (src.size_bytes == 0) return;
  if (src.block->file) return copy_with_file(*this, src, to, false);
  if (src.host() != nullptr) {
    compute_queue().wait_idle();
    std::memcpy(to, src.host(), src.size_bytes);
    return;
  }
  Staging staging(*this, MemoryKind::Readback, src.size_bytes);
  size_t piece_bytes = staging.piece_bytes();
  size_t pieces = (src.size_bytes + piece_bytes - 1) / piece_bytes;
  auto size_of = [&](size_t i) { return std::min(piece_bytes, src.size_bytes - i * piece_bytes); };
  auto start = [&](size_t i) {
    staging.copy(i, staging.half(i, size_of(i)), src.sub(i * piece_bytes, size_of(i)));
  };
  start(0);
  for (size_t i = 0; i < pieces; ++i) {
    if (i + 1 < pieces) start(i + 1);
    staging.wait(i);
    std::memcpy(to + i * piece_bytes, staging.half(i, size_of(i)).host(), size_of(i));
  }
}

void close_in_children(Device& device) {
  static const bool registered = os::at_fork(before_fork, in_parent, in_child);
  TUFF_CHECK(registered, "no memory for what fork() has to call");
  OpenDevices& o = open_devices();
  std::lock_guard lock(o.mutex);
  o.devices.push_back(&device);
}

void Device::shut_down() noexcept {
  {
    OpenDevices& o = open_devices();
    std::lock_guard lock(o.mutex);
    std::erase(o.devices, this);
  }
  for (Queue* queue : {&compute_queue(), copy_queue()}) {
    if (queue == nullptr) continue;
    try {
      queue->wait_idle();
    } catch (const Error&) {
      // Lost: nothing more will run, so the memory may go.
    }
    try {
      queue->collect(true);
    } catch (const Error&) {
      // Lists of a lost device; their owner goes with it.
    }
  }
  allocator_.reset();
}

}  // namespace tuff::hcq
