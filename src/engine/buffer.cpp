#include "engine/buffer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/atomic_max.h"
#include "base/check.h"
#include "base/log.h"
#include "engine/profile/profile.h"
#include "engine/reading.h"

namespace tuff::engine {
Contents::Reader Contents::begin() const {
  if (!source) return open();
  return [from = source.get(), offset = uint64_t{0}](std::span<std::byte> piece) mutable {
    from->on().hcq().download(from->span().sub(offset, piece.size()), piece.data());
    offset += piece.size();
  };
}

void Contents::fill(hcq::Device& device, const hcq::Span& to) const {
  constexpr size_t kPieceBytes = 16 << 20;
  const Reader read = begin();
  if (std::byte* host = to.host()) return read({host, to.size_bytes});
  upload_pieces(device, to, kPieceBytes, [&](size_t, std::span<std::byte> piece) { read(piece); });
}

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n, Backing backing)
    : Storage(device->name(), t, n),
      device_(std::move(device)),
      backing_(std::move(backing)),
      uses_(*device_) {}

Ref<Buffer> Buffer::make(std::shared_ptr<Device> device, DType t, int64_t n) {
  return new Buffer(std::move(device), t, n, Own{});
}

Ref<Buffer> Buffer::view(const Ref<Buffer>& of, DType t, int64_t n, uint64_t byte_offset) {
  const View* outer = std::get_if<View>(&of->backing_);
  const View v{outer ? outer->base : of, of->byte_offset() + byte_offset};
  const Ref<Buffer> b = new Buffer(of->device_, t, n, v);
  TUFF_CHECK(v.offset + b->size_bytes() <= v.base->size_bytes(),
             "view of {} bytes at {} in a buffer of {}", b->size_bytes(), v.offset,
             v.base->size_bytes());
  return b;
}

Ref<Buffer> Buffer::adopted(std::shared_ptr<Device> device, DType t, int64_t n,
                            hcq::ForeignMemory memory, const Origin& origin) {
  const Ref<Buffer> b = new Buffer(std::move(device), t, n, Foreign{memory.read_only});
  b->known_.close();
  b->span_ = b->on().hcq().allocator().adopt(std::move(memory), b->size_bytes());
  if (origin) b->uses_.bind_to(origin);
  return b;
}

Ref<Buffer> Buffer::filled_from(std::shared_ptr<Device> device, DType t, int64_t n,
                                Contents contents) {
  auto kept = std::make_shared<const Contents>(std::move(contents));
  return new Buffer(std::move(device), t, n, Deferred{std::move(kept), nullptr, false});
}

Buffer::~Buffer() { free_memory(); }

void Buffer::free_memory() noexcept {
  if (!span_) return;
  if (auto* d = std::get_if<Deferred>(&backing_); d && d->reading) {
    d->reading->wait();
    d->reading.reset();
  }
  device_->hcq().allocator().free(std::exchange(span_, {}), {&device_->queue(), uses_.last()});
}

hcq::Span Buffer::span() {
  if (View* v = std::get_if<View>(&backing_)) return v->base->span().sub(v->offset, size_bytes());
  if (settled_.load(std::memory_order_acquire)) return span_;
  std::lock_guard lock(mutex_);
  if (!span_) allocate();
  auto* d = std::get_if<Deferred>(&backing_);
  if (d && d->reading) d->order(uses_);
  if (!d || (!d->reading && !d->contents)) settled_.store(true, std::memory_order_release);
  return span_;
}

// That a reading has failed is told by the origin.
[[gnu::noinline]] void Buffer::Deferred::order(Uses& uses) {
  forget_if_read();
  if (!reading || ordered || reading->is_over()) return;
  uses.until(reading->order());
  ordered = true;
}

void Buffer::Deferred::forget_if_read() {
  if (!reading || !reading->is_over() || reading->has_failed()) return;
  reading.reset();
  contents.reset();
}

void Buffer::allocate() {
  allocate_empty();
  auto* d = std::get_if<Deferred>(&backing_);
  if (!d || !d->contents) return;
  try {
    if (size_bytes() != 0) d->contents->fill(device_->hcq(), span_.sub(0, size_bytes()));
  } catch (...) {
    free_memory();
    throw;
  }
  d->contents.reset();
}

void Buffer::allocate_empty() {
  device_->hcq().liveness().require_open();
  hcq::Allocator& allocator = device_->hcq().allocator();
  // A word at least, but for files, which have what is in them.
  const uint64_t size = std::max<uint64_t>(size_bytes(), device_->hcq().files() ? 0 : 4);
  span_ = allocator.allocate(size, hcq::MemoryKind::Device);
  TUFF_DEBUG_LINE(7, "alloc {}: {} bytes for storage {}, {} live", device, size_bytes(), id,
                  allocator.stats().live_bytes);
}

bool Buffer::deferred() const {
  const Buffer& r = root();
  const auto* d = std::get_if<Deferred>(&r.backing_);
  std::lock_guard lock(r.mutex_);
  return d && d->contents && (!d->reading || d->reading->has_failed());
}

std::shared_ptr<const Contents> Buffer::unread() const {
  const auto* d = std::get_if<Deferred>(&backing_);
  std::lock_guard lock(mutex_);
  return d ? d->contents : nullptr;
}

bool Buffer::allocated() const {
  const Buffer& r = root();
  std::lock_guard lock(r.mutex_);
  return bool(r.span_);
}

void Buffer::copyin(const void* src) {
  if (size_bytes() == 0) return;
  device_->hcq().liveness().require_open();
  if (auto* d = std::get_if<Deferred>(&backing_)) {
    std::lock_guard lock(mutex_);
    if (d->reading) d->reading->wait();
    d->reading.reset();
    d->contents.reset();  // all of it is overwritten
  }
  const hcq::Span s = span();
  if (std::byte* host = s.host()) {
    device_->queue().wait(uses().last());
    std::memcpy(host, src, size_bytes());
  } else {
    device_->hcq().upload(s.sub(0, size_bytes()), src);
  }
  written_from({});
}

void Buffer::copyout(void* dst) {
  const ProfiledScope scope("download");
  if (size_bytes() == 0) return;
  device_->hcq().liveness().require_open();
  const hcq::Span s = span();
  if (const std::byte* host = s.host()) {
    device_->queue().wait(uses().last());
    std::memcpy(dst, host, size_bytes());
  } else {
    device_->hcq().download(s.sub(0, size_bytes()), dst);
  }
  device_->hcq().allocator().collect();
  verify();
}

void Buffer::verify() {
  Buffer& r = root();
  if (!r.uses_.has_origin()) return;
  const uint64_t reached = device_->queue().timeline().value();
  r.uses_.origin().look(device_->queue(), reached);
  r.uses_.origin().require();
  auto* d = std::get_if<Deferred>(&r.backing_);
  if (!d) return;
  std::lock_guard lock(r.mutex_);
  if (d->reading) d->reading->wait();  // the bytes are there: it is as good as over
  d->forget_if_read();
}

void Buffer::written_from(const Origin& origin) {
  Buffer& r = root();
  r.known_.forget();
  r.uses_.written_from(origin, size_bytes() >= r.size_bytes());
}

// What goes to memory which the host reaches is read by one list per device, so that all requests
// are in flight; the others one after the other.
class ContentsReader {
 public:
  explicit ContentsReader(std::vector<Buffer*> roots) : roots_(std::move(roots)) {
    for (Buffer* b : roots_) locks_.emplace_back(b->mutex_);
  }
  void run() {
    for (Buffer* b : roots_) {
      forget_failed(*b);
      if (deferred(*b).contents && !b->span_ && b->size_bytes() != 0) add(*b);
    }
    for (auto& [device, group] : groups_) start(*device, group);
    for (Buffer* b : roots_)
      if (deferred(*b).contents && !deferred(*b).reading) b->allocate();
  }

 private:
  struct Group {
    std::vector<Buffer*> buffers;
    std::vector<Reading::Part> parts;
  };
  static Buffer::Deferred& deferred(Buffer& b) { return std::get<Buffer::Deferred>(b.backing_); }
  static void forget_failed(Buffer& b) {
    const Buffer::Deferred& d = deferred(b);
    if (!d.contents || !d.reading || !d.reading->has_failed()) return;
    b.free_memory();
    b.uses_.written_from({}, true);
  }
  void add(Buffer& b) {
    if (!b.on().read_signal()) return;
    b.allocate_empty();
    if (!b.span_.host()) return b.free_memory();
    Group& g = groups_[&b.on()];
    g.buffers.push_back(&b);
    g.parts.push_back({b.span_.sub(0, b.size_bytes()), deferred(b).contents});
  }
  static void start(Device& device, Group& group) {
    std::shared_ptr<Reading> reading;
    try {
      reading = std::make_shared<Reading>(device, std::move(group.parts));
    } catch (...) {
      for (Buffer* b : group.buffers) b->free_memory();
      throw;
    }
    for (Buffer* b : group.buffers) {
      deferred(*b).reading = reading;
      deferred(*b).ordered = false;
      b->uses_.written_from(reading->origin(), true);
    }
  }

  std::vector<Buffer*> roots_;
  std::vector<std::unique_lock<std::mutex>> locks_;
  std::map<Device*, Group> groups_;
};

void read_contents(std::span<const Ref<Buffer>> buffers) {
  std::vector<Buffer*> roots;
  for (const Ref<Buffer>& b : buffers)
    if (b->deferred()) roots.push_back(&b->root());
  if (roots.empty()) return;
  // In one order, for another thread may read some of them at the same time.
  std::ranges::sort(roots, {}, &Buffer::id);
  const auto repeated = std::ranges::unique(roots);
  roots.erase(repeated.begin(), repeated.end());
  const ProfiledScope scope("read files");
  ContentsReader(std::move(roots)).run();
}

GroupUse::GroupUse(std::vector<Ref<Buffer>> members) : members_(std::move(members)) {
  const auto allocation = [](const Ref<Buffer>& b) { return b->root().id; };
  std::ranges::sort(members_, {}, allocation);
  const auto repeated = std::ranges::unique(members_, {}, allocation);
  members_.erase(repeated.begin(), repeated.end());
  for (const Ref<Buffer>& b : members_) b->uses().join(last_);
}

GroupUse::~GroupUse() {
  for (const Ref<Buffer>& b : members_) b->uses().leave(last_);
}

void GroupUse::until(uint64_t value) { raise_to(last_, value); }

}  // namespace tuff::engine
