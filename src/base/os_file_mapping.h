// FileMapping: a part of a file as memory, which is only read. Called by io and tensor. Knows
// nothing of tensors.
//
// A mapped file that becomes shorter, or whose disk fails, raises SIGBUS in the thread that touches
// what is missing. From the first mapping on a handler puts zeros there and marks the file
// (DataFile::require_mapped), so that the access goes on, and waiting for what was computed from it
// gives an IoError. Faults anywhere else go to the handler that was set before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/os_data_file.h"

namespace tuff::os {

class FileMapping {
 public:
  // Null where nothing can be mapped: file systems without mmap, no mappings left, no bytes asked
  // for. IoError where the file does not have the range.
  static std::unique_ptr<FileMapping> make(std::shared_ptr<const DataFile> file, uint64_t offset,
                                           uint64_t size_bytes);
  // Whole pages, which become this object's, and where in them the range begins.
  FileMapping(std::shared_ptr<const DataFile> file, std::span<std::byte> pages, size_t lead,
              uint64_t file_offset);
  ~FileMapping();  // the memory is no longer in use
  FileMapping(const FileMapping&) = delete;
  const std::byte* data() const { return pages_.data() + lead_; }

 private:
  std::shared_ptr<const DataFile> file_;
  std::span<std::byte> pages_;
  size_t lead_;
  void* region_;  // what the handler knows of it
};

// The calling thread takes SIGBUS from now on: a thread that inherited a mask without it would end
// the process.
void unblock_bus_errors() noexcept;

}  // namespace tuff::os
