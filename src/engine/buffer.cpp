#include "engine/buffer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/profile/profile.h"
#include "engine/reading.h"

namespace tuff::engine {
namespace {

void raise(std::atomic<uint64_t>& use, uint64_t value) {
  uint64_t before = use.load(std::memory_order_relaxed);
  while (before < value && !use.compare_exchange_weak(before, value, std::memory_order_acq_rel)) {}
}

// Pieces of memory through which contents go to where the host does not reach.
constexpr size_t kStagedBytes = 16 << 20;

void fill(hcq::Device& device, const hcq::Span& to, const Contents& contents) {
  const Contents::Reader read = contents.begin();
  if (std::byte* host = to.host()) return read({host, to.size_bytes});
  device.upload_pieces(to, kStagedBytes, [&](size_t, std::span<std::byte> piece) { read(piece); });
}

}  // namespace

Contents::Reader Contents::begin() const {
  if (!source) return open();
  return [from = source.get(), offset = uint64_t{0}](std::span<std::byte> piece) mutable {
    from->on().hcq().download(from->span().sub(offset, piece.size()), piece.data());
    offset += piece.size();
  };
}

std::atomic<uint64_t> Buffer::with_origin_{0};

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n)
    : Storage(device->name(), t, n), device_(std::move(device)) {}

Buffer::Buffer(Ref<Buffer> base, DType t, int64_t n, uint64_t byte_offset)
    : Storage(base->device, t, n),
      device_(base->device_),
      base_(base->base_ ? base->base_ : base),
      offset_(base->offset_ + byte_offset) {
  TUFF_CHECK(offset_ + size_bytes() <= base_->size_bytes(),
             "view of {} bytes at {} in a buffer of {}", size_bytes(), offset_,
             base_->size_bytes());
}

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n, HostMemory memory)
    : Storage(device->name(), t, n),
      device_(std::move(device)),
      read_only_(memory.read_only),
      mapped_(std::move(memory.origin)) {
  known_.close();
  span_ = device_->hcq().allocator().adopt(memory.data, size_bytes(), std::move(memory.release));
  set_origin(mapped_);
}

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n, LentMemory memory)
    : Storage(device->name(), t, n), device_(std::move(device)), read_only_(memory.read_only) {
  known_.close();
  span_ = device_->hcq().allocator().adopt(memory.block, memory.offset, size_bytes(),
                                           std::move(memory.release));
}

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n, FileRange range)
    : Storage(device->name(), t, n), device_(std::move(device)) {
  known_.close();
  hcq::Device::FileBlock block =
      device_->hcq().file_block(std::move(range.file), range.offset, size_bytes(), range.unchanged);
  span_ = device_->hcq().allocator().adopt(block.block, 0, size_bytes(), std::move(block.release));
}

Buffer::Buffer(std::shared_ptr<Device> device, DType t, int64_t n, Contents contents)
    : Storage(device->name(), t, n),
      device_(std::move(device)),
      contents_(std::make_shared<const Contents>(std::move(contents))) {}

Buffer::~Buffer() {
  if (has_origin_.load(std::memory_order_acquire)) with_origin_.fetch_sub(1);
  let_go();
}

void Buffer::let_go() noexcept {
  if (!span_) return;
  if (reading_) reading_->wait();
  reading_.reset();
  std::vector<hcq::TimelinePoint> last;
  if (const uint64_t value = last_use()) last.push_back({&device_->queue(), value});
  device_->hcq().allocator().free(std::exchange(span_, {}), last);
}

hcq::Span Buffer::span() {
  if (base_) return base_->span().sub(offset_, size_bytes());
  std::lock_guard lock(mutex_);
  if (!span_) allocate();
  if (reading_) [[unlikely]]
    order_after_reading();
  return span_;
}

// Of one that has failed the origin tells.
void Buffer::order_after_reading() {
  forget_reading();
  if (!reading_ || ordered_ || reading_->is_over()) return;
  raise(last_use_, reading_->order());
  ordered_ = true;
}

void Buffer::forget_reading() {
  if (!reading_ || !reading_->is_over() || reading_->has_failed()) return;
  reading_.reset();
  contents_.reset();
}

void Buffer::allocate() {
  allocate_empty();
  if (!contents_) return;
  try {
    if (size_bytes() != 0) fill(device_->hcq(), span_.sub(0, size_bytes()), *contents_);
  } catch (...) {
    let_go();
    throw;
  }
  contents_.reset();
}

void Buffer::allocate_empty() {
  device_->hcq().require_open();
  hcq::Allocator& allocator = device_->hcq().allocator();
  // A word at least, but of files, which have what is in them.
  const uint64_t size =
      device_->hcq().keeps_memory() ? size_bytes() : std::max<uint64_t>(size_bytes(), 4);
  span_ = allocator.allocate(size, hcq::MemoryKind::Device);
  TUFF_DEBUG_LINE(7, "alloc {}: {} bytes for storage {}, {} live", device, size_bytes(), id,
                  allocator.stats().live_bytes);
}

bool Buffer::deferred() const {
  const Buffer& r = root();
  std::lock_guard lock(r.mutex_);
  return r.contents_ && (!r.reading_ || r.reading_->has_failed());
}

std::shared_ptr<const Contents> Buffer::unread() const {
  std::lock_guard lock(mutex_);
  return contents_;
}

bool Buffer::allocated() const {
  if (base_) return base_->allocated();
  std::lock_guard lock(mutex_);
  return bool(span_);
}

void Buffer::copyin(const void* src) {
  if (size_bytes() == 0) return;
  device_->hcq().require_open();
  if (!base_) {
    std::lock_guard lock(mutex_);
    if (reading_) reading_->wait();
    reading_.reset();
    contents_.reset();  // all of it is overwritten
  }
  const hcq::Span s = span();
  if (std::byte* host = s.host()) {
    device_->queue().wait(last_use());
    std::memcpy(host, src, size_bytes());
  } else {
    device_->hcq().upload(s.sub(0, size_bytes()), src);
  }
  written_from({});
}

void Buffer::copyout(void* dst) {
  const ProfiledScope scope("download");
  if (size_bytes() == 0) return;
  device_->hcq().require_open();
  const hcq::Span s = span();
  if (const std::byte* host = s.host()) {
    device_->queue().wait(last_use());
    std::memcpy(dst, host, size_bytes());
  } else {
    device_->hcq().download(s.sub(0, size_bytes()), dst);
  }
  device_->hcq().allocator().collect();
  verify();
}

void Buffer::verify() {
  if (!has_origin()) return;
  const uint64_t reached = device_->queue().timeline().value();
  origin().look(device_->queue(), reached);
  origin().require();
  Buffer& r = base_ ? *base_ : *this;
  std::lock_guard lock(r.mutex_);
  if (r.reading_) r.reading_->wait();  // the bytes are there: it is as good as over
  r.forget_reading();
}

Origin Buffer::origin() {
  if (!has_origin()) return {};
  Buffer& r = base_ ? *base_ : *this;
  std::lock_guard lock(r.mutex_);
  if (!r.mapped_) r.set_origin(r.origin_.unsettled(device_->queue(), r.written_until_));
  return r.origin_;
}

void Buffer::written_from(const Origin& origin) {
  Buffer& r = base_ ? *base_ : *this;
  r.known_.forget();
  if (!origin && !r.has_origin_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(r.mutex_);
  const bool whole = size_bytes() >= r.size_bytes();
  r.set_origin(whole ? origin : r.origin_.with(origin));
  r.written_until_ = UINT64_MAX;
}

void Buffer::written_until(uint64_t value) {
  if (!has_origin()) return;
  Buffer& r = base_ ? *base_ : *this;
  std::lock_guard lock(r.mutex_);
  r.written_until_ = value;
}

void Buffer::set_origin(const Origin& origin) {
  if (!(origin == origin_)) origin_ = origin;
  const bool had = has_origin_.exchange(bool(origin_), std::memory_order_acq_rel);
  with_origin_.fetch_add(uint64_t(bool(origin_)) - uint64_t(had), std::memory_order_acq_rel);
}

void Buffer::used_until(uint64_t value) {
  raise(base_ ? base_->last_use_ : last_use_, value);
}

uint64_t Buffer::last_use() const {
  const Buffer& r = root();
  uint64_t last = r.last_use_.load(std::memory_order_acquire);
  if (!r.in_groups_.load(std::memory_order_acquire)) return last;
  std::lock_guard lock(r.mutex_);
  for (const GroupUse* g : r.groups_) last = std::max(last, g->last_use());
  return last;
}

// What goes to memory which the host reaches is read by one list per device, so that all requests
// are in flight; the others one after the other.
class ContentsReader {
 public:
  explicit ContentsReader(std::vector<Buffer*> roots) : roots_(std::move(roots)) {
    for (Buffer* b : roots_) locks_.emplace_back(b->mutex_);
  }
  void run() {
    for (Buffer* b : roots_)
      if (b->contents_) forget_failed(*b);
    for (Buffer* b : roots_)
      if (b->contents_ && !b->span_ && b->size_bytes() != 0) add(*b);
    for (auto& [device, group] : groups_) start(*device, group);
    for (Buffer* b : roots_)
      if (b->contents_ && !b->reading_) b->allocate();
  }

 private:
  struct Group {
    std::vector<Buffer*> buffers;
    std::vector<Reading::Part> parts;
  };
  static void forget_failed(Buffer& b) {
    if (!b.reading_ || !b.reading_->has_failed()) return;
    b.let_go();
    b.set_origin({});
  }
  void add(Buffer& b) {
    if (!b.on().read_signal()) return;
    b.allocate_empty();
    if (!b.span_.host()) return b.let_go();
    Group& g = groups_[&b.on()];
    g.buffers.push_back(&b);
    g.parts.push_back({b.span_.sub(0, b.size_bytes()), b.contents_});
  }
  static void start(Device& device, Group& group) {
    std::shared_ptr<Reading> reading;
    try {
      reading = std::make_shared<Reading>(device, std::move(group.parts));
    } catch (...) {
      for (Buffer* b : group.buffers) b->let_go();
      throw;
    }
    for (Buffer* b : group.buffers) {
      b->reading_ = reading;
      b->ordered_ = false;
      b->set_origin(reading->origin());
    }
  }

  std::vector<Buffer*> roots_;
  std::vector<std::unique_lock<std::mutex>> locks_;
  std::map<Device*, Group> groups_;
};

void read_contents(std::span<const Ref<Buffer>> buffers) {
  std::vector<Buffer*> roots;
  for (const Ref<Buffer>& b : buffers)
    if (b->deferred()) roots.push_back(const_cast<Buffer*>(&b->root()));
  if (roots.empty()) return;
  // In one order, for somebody else may read some of them at the same time.
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
  for (const Ref<Buffer>& b : members_) {
    Buffer& r = b->base_ ? *b->base_ : *b;
    std::lock_guard lock(r.mutex_);
    r.groups_.push_back(this);
    r.in_groups_.store(true, std::memory_order_release);
  }
}

GroupUse::~GroupUse() {
  for (const Ref<Buffer>& b : members_) {
    Buffer& r = b->base_ ? *b->base_ : *b;
    raise(r.last_use_, last_use());
    std::lock_guard lock(r.mutex_);
    std::erase(r.groups_, this);
    r.in_groups_.store(!r.groups_.empty(), std::memory_order_release);
  }
}

void GroupUse::used_until(uint64_t value) { raise(last_use_, value); }

}  // namespace tuff::engine
