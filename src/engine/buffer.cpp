#include "engine/buffer.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "engine/profile/profile.h"

namespace tuff::engine {

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

Buffer::~Buffer() {
  if (!span_) return;
  std::vector<hcq::TimelinePoint> last;
  if (const uint64_t value = last_use_.load()) last.push_back({&device_->queue(), value});
  device_->hcq().allocator().free(span_, last);
}

hcq::Span Buffer::span() {
  if (base_) return base_->span().sub(offset_, size_bytes());
  std::lock_guard lock(mutex_);
  if (span_) return span_;
  hcq::Allocator& allocator = device_->hcq().allocator();
  span_ = allocator.allocate(std::max<uint64_t>(size_bytes(), 4), hcq::MemoryKind::Device);
  TUFF_DEBUG_LINE(7, "alloc {}: {} bytes for storage {}, {} live", device, size_bytes(), id,
                  allocator.stats().live_bytes);
  return span_;
}

bool Buffer::allocated() const {
  if (base_) return base_->allocated();
  std::lock_guard lock(mutex_);
  return bool(span_);
}

void Buffer::copyin(const void* src) {
  if (size_bytes() == 0) return;
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
  const hcq::Span s = span();
  if (const std::byte* host = s.host()) {
    device_->queue().wait(last_use());
    std::memcpy(dst, host, size_bytes());
  } else {
    device_->hcq().download(s.sub(0, size_bytes()), dst);
  }
  origin().require();
}

Origin Buffer::origin() const {
  if (!has_origin()) return {};
  const Buffer& r = root();
  std::lock_guard lock(r.mutex_);
  return r.origin_;
}

void Buffer::written_from(const Origin& origin) {
  Buffer& r = base_ ? *base_ : *this;
  if (!origin && !r.has_origin_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(r.mutex_);
  const bool whole = size_bytes() >= r.size_bytes();
  Origin now = whole ? origin : r.origin_.with(origin);
  if (!(now == r.origin_)) r.origin_ = std::move(now);
  r.has_origin_.store(bool(r.origin_), std::memory_order_release);
}

void Buffer::used_until(uint64_t value) {
  std::atomic<uint64_t>& use = root_use();
  uint64_t before = use.load(std::memory_order_relaxed);
  while (before < value && !use.compare_exchange_weak(before, value, std::memory_order_acq_rel)) {}
}

}  // namespace tuff::engine
