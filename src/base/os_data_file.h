// DataFile: a file whose bytes are read and written at any offset, by many requests at once where
// they are many. Called by io (contents of tensors) and by the device DISK. Failures throw IoError
// naming the file, the byte and the remedy.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "base/os_descriptor.h"

namespace tuff::os {

class DataFile {
 public:
  enum class Mode {
    Read,
    ReadWrite,  // Read alone where the system allows no more
    Create,     // ReadWrite; made, empty, if it is not there
  };
  DataFile(const std::string& path, Mode mode);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  const std::string& path() const { return path_; }
  bool writable() const { return writable_; }
  uint64_t opened_bytes() const { return opened_.size_bytes; }  // when it was opened
  uint64_t size_bytes() const;                                  // by now
  // All of `into`; IoError where the file ends before.
  void read_at(uint64_t offset, std::span<uint8_t> into) const;
  void write_at(uint64_t offset, std::span<const uint8_t> from) const;
  // At least so long from now on; zeros where nothing was written.
  void extend(uint64_t size_bytes) const;
  // Whether this file is what its path stands for.
  bool is_at_path() const;
  // IoError if it was written to or changed its size since it was opened. A file that was
  // deleted or replaced has not changed: this is still the one that was opened.
  void require_unchanged() const;
  // IoError where the file does not have that range.
  void require_range(uint64_t offset, uint64_t size_bytes) const;
  // For a mapped file (os_file_mapping.h): IoError if an access by memory has failed, or if it now
  // ends before `end`, where the rest of a page would be zeros.
  void require_mapped(uint64_t end) const;
  void require_writable() const;

  // For transfers. The second descriptor passes the page cache by; -1: the file system has none.
  int descriptor() const { return file_.get(); }
  int direct_descriptor() const { return direct_fd_.load(std::memory_order_relaxed); }
  void direct_refused() const { direct_fd_.store(-1, std::memory_order_relaxed); }
  uint32_t memory_alignment() const { return memory_alignment_; }  // of direct requests
  uint32_t offset_alignment() const { return offset_alignment_; }
  // Whether most of that range is in the page cache. Touches nothing.
  bool is_cached(uint64_t offset, uint64_t size_bytes) const;
  // For mappings: the first page that an access has found missing, or UINT64_MAX.
  std::atomic<uint64_t>& damaged_at() const { return damaged_at_; }

 private:
  struct State {
    uint64_t device = 0, inode = 0, size_bytes = 0;
    int64_t changed_s = 0, changed_ns = 0;
    bool operator==(const State&) const = default;
  };
  State now() const;
  void open_direct();
  void map_all() const;  // under map_mutex_
  bool open_at(const std::string& path, Mode mode);

  std::string path_;
  Descriptor file_, direct_;
  mutable std::atomic<int> direct_fd_{-1};
  bool writable_ = false;
  uint32_t memory_alignment_ = 4096, offset_alignment_ = 4096;
  State opened_;
  mutable std::atomic<uint64_t> damaged_at_{UINT64_MAX};
  mutable std::mutex map_mutex_;
  mutable void* map_ = nullptr;  // never touched: it is there to be asked about
  mutable uint64_t map_bytes_ = 0;
};

}  // namespace tuff::os
