// Bytes of untrusted files: a source that checks every range, and a cursor over a part of
// it. Called by the readers of formats. Must never know of tensors; needs no more than base.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace tuff::os {
class DataFile;
}

namespace tuff::io {

// Takes bytes, one piece after the other; a piece is gone when it returns.
using ByteSink = std::function<void(std::span<const uint8_t> piece)>;

// Anything of a known size that is read at any offset; thread-safe.
class ByteSource {
 public:
  ByteSource(std::string name, uint64_t size_bytes) : name_(std::move(name)), size_(size_bytes) {}
  virtual ~ByteSource() = default;
  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return size_; }
  // IoError naming the range where it is not inside.
  void read(uint64_t offset, std::span<uint8_t> into) const;
  std::vector<uint8_t> bytes(uint64_t offset, uint64_t count) const;
  void require(uint64_t offset, uint64_t count) const;
  // The file that these bytes are, or null.
  virtual std::shared_ptr<const os::DataFile> file() const { return nullptr; }

 private:
  virtual void read_inside(uint64_t offset, std::span<uint8_t> into) const = 0;
  std::string name_;
  uint64_t size_;
};

// What stays where it is as long as the source lives.
class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(std::string name, std::span<const uint8_t> bytes)
      : ByteSource(std::move(name), bytes.size()), bytes_(bytes) {}

 private:
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override;
  std::span<const uint8_t> bytes_;
};

// "FILE: at byte N: reason"
template <class... Args>
[[noreturn]] void fail_at(const ByteSource& source, uint64_t offset,
                          fmt::format_string<Args...> reason, Args&&... args) {
  fail<IoError>("{}: at byte {}: {}", source.name(), offset,
                fmt::format(reason, std::forward<Args>(args)...));
}

// What a name in a file may show: at most 80 characters, others than printable ASCII escaped.
std::string shown(std::string_view text);

// Reads on from `begin`, never beyond `end`.
class ByteReader {
 public:
  ByteReader(const ByteSource& source, uint64_t begin, uint64_t end);
  explicit ByteReader(const ByteSource& source) : ByteReader(source, 0, source.size_bytes()) {}
  const ByteSource& source() const { return source_; }
  uint64_t offset() const { return at_; }
  uint64_t left() const { return end_ - at_; }
  bool done() const { return at_ == end_; }

  template <class T>
    requires std::is_arithmetic_v<T>
  T little() {
    return number<T>(std::endian::native == std::endian::little);
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  T big() {
    return number<T>(std::endian::native == std::endian::big);
  }
  uint8_t byte() { return little<uint8_t>(); }
  // IoError where fewer than `count` are left, before any memory is taken.
  std::vector<uint8_t> bytes(uint64_t count);
  std::string text(uint64_t count);
  // Up to and without the newline, which is passed.
  std::string line();
  void skip(uint64_t count);
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(source_, at_, reason, std::forward<Args>(args)...);
  }

 private:
  template <class T>
  T number(bool native) {
    uint8_t raw[sizeof(T)];
    take(raw);
    if (!native)
      for (size_t i = 0; i < sizeof(T) / 2; i++) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    T value;
    std::memcpy(&value, raw, sizeof(T));
    return value;
  }
  void require_left(uint64_t count) const;
  void take(std::span<uint8_t> into);

  const ByteSource& source_;
  uint64_t at_, end_;
  std::vector<uint8_t> window_;  // of the source, from window_at_
  uint64_t window_at_ = 0;
};

}  // namespace tuff::io
