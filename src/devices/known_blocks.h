// KnownBlocks: where a device's memory is and lately was, so that the error of a fault can say what
// lies at its address. Used by devices that submit directly. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace tuff::devices {

class KnownBlocks {
 public:
  void add(uint64_t address, size_t size_bytes);
  void remove(uint64_t address);
  // Memory of the device called `owner` that has been shared.
  void add_shared(uint64_t address, size_t size_bytes, std::string owner);
  // "; it lies 16 bytes into a block of 4096 bytes that was freed"
  std::string place_of(uint64_t address) const;

 private:
  struct Range {
    uint64_t address = 0, size_bytes = 0;
    std::string owner;  // another device's name
  };
  static void keep(std::deque<Range>& ranges, Range range);
  mutable std::mutex mutex_;
  std::map<uint64_t, size_t> blocks_;  // by address
  std::deque<Range> freed_, shared_;   // the last ones
};

}  // namespace tuff::devices
