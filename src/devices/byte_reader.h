// ByteReader: little-endian numbers and ranges of a file or ROM that may be damaged: every offset
// is checked. Called by readers of firmware and of GPUs' ROMs. IoError, naming what was to be read,
// where it is not there.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/check.h"

namespace tuff::devices {

class ByteReader {
 public:
  ByteReader(std::span<const uint8_t> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const { return bytes_.size(); }

  std::span<const uint8_t> range(uint64_t offset, uint64_t size_bytes, const char* what) const {
    if (offset > bytes_.size() || size_bytes > bytes_.size() - offset)
      damaged("{} ({} bytes at {:#x}) lies beyond its {} bytes", what, size_bytes, offset,
              bytes_.size());
    return bytes_.subspan(offset, size_bytes);
  }
  template <std::unsigned_integral T>
  T number(uint64_t offset, const char* what) const {
    T value = 0;
    std::memcpy(&value, range(offset, sizeof value, what).data(), sizeof value);
    return value;
  }
  uint8_t u8(uint64_t offset, const char* what) const { return number<uint8_t>(offset, what); }
  uint16_t u16(uint64_t offset, const char* what) const { return number<uint16_t>(offset, what); }
  uint32_t u32(uint64_t offset, const char* what) const { return number<uint32_t>(offset, what); }
  // Whether it is there at all.
  bool has(uint64_t offset, uint64_t size_bytes) const {
    return offset <= bytes_.size() && size_bytes <= bytes_.size() - offset;
  }

  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> text, Args&&... args) const {
    fail<IoError>("{}: {}", name_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::span<const uint8_t> bytes_;
  std::string name_;
};

}  // namespace tuff::devices
