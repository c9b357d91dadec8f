#include "engine/known_integers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace tuff::engine {
namespace {

template <class T>
int64_t as_int64(T v) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
    return v > uint64_t(kMost) ? kMost : int64_t(v);
  else
    return int64_t(v);
}

// Two loops without branches over what is in the cache: compilers make vectors of them.
template <class T>
Extremes of_block(const T* values, size_t count) {
  T least = values[0], greatest = values[0];
  for (size_t i = 0; i < count; i++) {
    least = values[i] < least ? values[i] : least;
    greatest = values[i] > greatest ? values[i] : greatest;
  }
  T second_least = greatest, second_greatest = least;
  for (size_t i = 0; i < count; i++) {
    const T low = values[i] == least ? greatest : values[i];
    const T high = values[i] == greatest ? least : values[i];
    second_least = low < second_least ? low : second_least;
    second_greatest = high > second_greatest ? high : second_greatest;
  }
  return {as_int64(least), as_int64(second_least), as_int64(second_greatest), as_int64(greatest)};
}

Extremes of_both(const Extremes& a, const Extremes& b) {
  Extremes out{std::min(a.least, b.least), 0, 0, std::max(a.greatest, b.greatest)};
  out.second_least = out.greatest;
  out.second_greatest = out.least;
  for (const Extremes& e : {a, b}) {
    for (const int64_t v : {e.least, e.second_least, e.second_greatest, e.greatest}) {
      if (v != out.least) out.second_least = std::min(out.second_least, v);
      if (v != out.greatest) out.second_greatest = std::max(out.second_greatest, v);
    }
  }
  return out;
}

template <class T>
Extremes found(const void* values, int64_t count) {
  std::array<T, 16384 / sizeof(T)> block;  // aligned, whatever was given
  const auto* at = static_cast<const std::byte*>(values);
  std::optional<Extremes> out;
  for (auto left = size_t(count); left > 0;) {
    const size_t n = std::min(left, block.size());
    std::memcpy(block.data(), at, n * sizeof(T));
    const Extremes here = of_block(block.data(), n);
    out = out ? of_both(*out, here) : here;
    at += n * sizeof(T);
    left -= n;
  }
  // It may stand for several: none of them is left out.
  if (out->greatest == std::numeric_limits<int64_t>::max()) out->second_greatest = out->greatest;
  return *out;
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
  static std::atomic<uint64_t> versions{0};
  extremes_ = extremes;
  bytes_.reset();
  version_.store(++versions, std::memory_order_release);
}

void KnownIntegers::clear() {
  std::lock_guard lock(mutex_);
  version_.store(0, std::memory_order_release);
  bytes_.reset();
}

void KnownIntegers::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  version_.store(0, std::memory_order_release);
  bytes_.reset();
}

std::optional<Extremes> KnownIntegers::extremes() const {
  if (!version()) return {};
  std::lock_guard lock(mutex_);
  if (!version()) return {};
  return extremes_;
}

KnownIntegers::Bytes KnownIntegers::contents(const std::function<std::vector<std::byte>()>& read) {
  uint64_t before = 0;
  {
    std::lock_guard lock(mutex_);
    before = version();
    if (bytes_ || !before) return bytes_;
  }
  const Bytes bytes = std::make_shared<const std::vector<std::byte>>(read());
  std::lock_guard lock(mutex_);
  if (version() == before) bytes_ = bytes;
  return bytes;
}

}  // namespace tuff::engine
