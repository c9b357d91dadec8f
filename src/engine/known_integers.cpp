#include "engine/known_integers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace tuff::engine {
namespace {

// Blocks of aligned values, whatever the alignment of those given.
template <class T, class Visit>
void each_block(const void* values, int64_t count, Visit&& visit) {
  std::array<T, 2048> block;
  const auto* at = static_cast<const std::byte*>(values);
  for (int64_t left = count; left > 0;) {
    const auto n = size_t(std::min<int64_t>(left, int64_t(block.size())));
    std::memcpy(block.data(), at, n * sizeof(T));
    visit(std::span<const T>(block.data(), n));
    at += n * sizeof(T);
    left -= int64_t(n);
  }
}

template <class T>
int64_t as_int64(T v) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
    return v > uint64_t(kMost) ? kMost : int64_t(v);
  else
    return int64_t(v);
}

// Loops without branches: compilers make vectors of them.
template <class T>
Extremes found(const void* values, int64_t count) {
  T least = std::numeric_limits<T>::max(), greatest = std::numeric_limits<T>::min();
  each_block<T>(values, count, [&](std::span<const T> block) {
    for (const T v : block) {
      least = std::min(least, v);
      greatest = std::max(greatest, v);
    }
  });
  T second_least = greatest, second_greatest = least;
  each_block<T>(values, count, [&](std::span<const T> block) {
    for (const T v : block) {
      second_least = std::min(second_least, v == least ? greatest : v);
      second_greatest = std::max(second_greatest, v == greatest ? least : v);
    }
  });
  return {as_int64(least), as_int64(second_least), as_int64(second_greatest), as_int64(greatest)};
}

}  // namespace

bool Extremes::inside(int64_t low, int64_t high, std::optional<int64_t> ignored) const {
  const bool ignores_least = ignored == least, ignores_greatest = ignored == greatest;
  if (ignores_least && ignores_greatest) return true;
  return (ignores_least ? second_least : least) >= low &&
         (ignores_greatest ? second_greatest : greatest) < high;
}

Extremes extremes_of(DType t, const void* values, int64_t count) {
  switch (t) {
    case DType::I8: return found<int8_t>(values, count);
    case DType::U8: return found<uint8_t>(values, count);
    case DType::I16: return found<int16_t>(values, count);
    case DType::U16: return found<uint16_t>(values, count);
    case DType::I32: return found<int32_t>(values, count);
    case DType::U32: return found<uint32_t>(values, count);
    case DType::I64: return found<int64_t>(values, count);
    default: TUFF_CHECK(t == DType::U64, "{} is no integer", name(t));
  }
  return found<uint64_t>(values, count);
}

void KnownIntegers::learn(const Extremes& extremes) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  version_++;
  extremes_ = extremes;
  bytes_.reset();
  known_.store(true, std::memory_order_release);
}

void KnownIntegers::clear() {
  std::lock_guard lock(mutex_);
  known_.store(false, std::memory_order_release);
  bytes_.reset();
}

void KnownIntegers::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  known_.store(false, std::memory_order_release);
  bytes_.reset();
}

std::optional<Extremes> KnownIntegers::extremes() const {
  if (!known_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  if (!known_.load(std::memory_order_relaxed)) return {};
  return extremes_;
}

KnownIntegers::Bytes KnownIntegers::kept() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

std::optional<uint64_t> KnownIntegers::version() const {
  std::lock_guard lock(mutex_);
  if (!known_.load(std::memory_order_relaxed)) return {};
  return version_;
}

KnownIntegers::Bytes KnownIntegers::keep(uint64_t version, Bytes bytes) {
  std::lock_guard lock(mutex_);
  if (known_.load(std::memory_order_relaxed) && version_ == version) bytes_ = bytes;
  return bytes;
}

}  // namespace tuff::engine
