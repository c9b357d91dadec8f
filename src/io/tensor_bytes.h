// From an entry of an index to a tensor: the one place where contents of files become memory of a
// device. Called by tensor_file. Must never know of a format.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_set>

#include <tuff/tensor.h>
#include "base/os_data_file.h"
#include "engine/mapped_file.h"
#include "io/formats/index.h"

namespace tuff::io {

// A file on disk as the readers see it.
class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path)
      : FileBytes(std::make_shared<os::DataFile>(path, os::DataFile::Mode::Read)) {}
  std::shared_ptr<const os::DataFile> file() const override { return file_; }

 private:
  explicit FileBytes(std::shared_ptr<const os::DataFile> file)
      : ByteSource(file->path(), file->opened_bytes()), file_(std::move(file)) {}
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override {
    file_->read_at(offset, into);
  }
  std::shared_ptr<const os::DataFile> file_;
};

// The contents of one file's tensors; checksums of archive members are compared once. Thread-safe.
// Tensors keep it alive until they have read their contents.
class TensorBytes : public std::enable_shared_from_this<TensorBytes> {
 public:
  // With `mmap` contents of files become views of them wherever that is possible.
  TensorBytes(std::unique_ptr<ByteSource> source, std::vector<ZipMember> members, bool mmap);
  const ByteSource& source() const { return *source_; }

  // The entry's tensor on a device, whose contents are read when it is first used. What neither
  // tuff nor a decoder knows is Unsupported, strides that overlap are an IoError. Its use is
  // an IoError where the file has changed and where contents are damaged: a bool that is neither 0
  // nor 1, a wrong checksum.
  Tensor tensor(const TensorEntry& entry, const std::string& device) const;
  // U8 (n, bytes of a block), of an entry in blocks.
  Tensor blocks(const TensorEntry& entry, const std::string& device) const;

 private:
  Tensor deferred(engine::Contents contents, DType dtype, const Sizes& sizes,
                  const std::string& device) const;
  Tensor row_major(const TensorEntry& entry, DType dtype, const Sizes& sizes,
                   const std::string& device) const;
  Ref<engine::Buffer> mapped(const TensorEntry& entry, DType dtype, int64_t count,
                             const std::string& device) const;
  Tensor strided(const TensorEntry& entry, const std::string& device) const;
  class EntryReader;
  engine::Contents::Reader open(const TensorEntry& entry) const;
  bool is_verified(const TensorEntry& entry) const;

  std::unique_ptr<ByteSource> source_;
  std::vector<ZipMember> members_;
  std::optional<engine::MappedFile> map_;
  mutable std::mutex mutex_;
  mutable std::unordered_set<uint32_t> verified_;  // members, under mutex_
};

}  // namespace tuff::io
