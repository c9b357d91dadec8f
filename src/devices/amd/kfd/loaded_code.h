// LoadedCode: the list of code objects on the process's GPUs, as debuggers expect it: an r_debug
// (link.h) whose address RUNTIME_ENABLE is given. An entry's l_addr is where the image lies, its
// name says where in this process the object's ELF bytes are, with addresses in the image for its
// sections (sh_addr). Readers may walk the list while it changes: entries are linked by single
// stores, and what is taken away stays readable for a while. Source: ROCr
// libhsa/loader/executable.cpp, LLVM AMDGPUUsage "Loaded code object path ...".
#pragma once

#include <link.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tuff::devices::amd {

class LoadedCode {
 public:
  LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  uint64_t debug_address() const { return reinterpret_cast<uint64_t>(&debug_); }
  struct Entry {
    link_map map{};
    std::string name;
    std::vector<uint8_t> object;
  };
  Entry* add(uint64_t address, std::vector<uint8_t> object);
  void remove(Entry* entry) noexcept;

 private:
  static constexpr size_t kKept = 64;  // entries that are no longer linked
  void link(link_map*& place, link_map* entry) noexcept;
  r_debug debug_{};
  std::mutex mutex_;
  std::list<std::unique_ptr<Entry>> entries_;
  std::deque<std::unique_ptr<Entry>> removed_;
};

}  // namespace tuff::devices::amd
