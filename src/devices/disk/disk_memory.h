// DiskMemory: a range of a file as a block of memory. Called by the device, its queue and, as
// FileMemory, by copies of the host.
#pragma once

#include <memory>

#include "base/os_transfer.h"
#include "hcq/memory.h"

namespace tuff::devices {

class DiskMemory final : public hcq::FileMemory {
 public:
  // With `unchanged` reads fail if the file was written to since it was opened.
  DiskMemory(std::shared_ptr<const os::DataFile> file, uint64_t offset, bool unchanged)
      : file_(std::move(file)), offset_(offset), unchanged_(unchanged) {}
  void read(size_t offset, std::span<std::byte> into) override;
  void write(size_t offset, std::span<const std::byte> from) override;

  const os::DataFile& file() const { return *file_; }
  os::Transfer transfer(size_t offset, std::byte* memory, size_t size_bytes, bool write) const {
    return {file_.get(), offset_ + offset, memory, size_bytes, write};
  }
  // After it was read: what came before a change is as it was.
  void require_unchanged() const {
    if (unchanged_) file_->require_unchanged();
  }

 private:
  std::shared_ptr<const os::DataFile> file_;
  uint64_t offset_;
  bool unchanged_;
};

}  // namespace tuff::devices
