// From an entry of an index to a tensor: the one place where contents of files become memory of a
// device. Called by tensor_file. Must never know of a format.
#pragma once

#include <mutex>
#include <unordered_set>

#include <tuff/tensor.h>
#include "base/os_stream.h"
#include "io/formats/index.h"

namespace tuff::io {

// A file on disk as the readers see it.
class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : FileBytes(std::make_unique<os::InputFile>(path)) {}

 private:
  explicit FileBytes(std::unique_ptr<os::InputFile> file)
      : ByteSource(file->path(), file->size_bytes()), file_(std::move(file)) {}
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override {
    file_->read_at(offset, into);
  }
  std::unique_ptr<os::InputFile> file_;
};

// The contents of one file's tensors; checksums of archive members are compared once. Thread-safe.
class TensorBytes {
 public:
  TensorBytes(std::unique_ptr<ByteSource> source, std::vector<ZipMember> members)
      : source_(std::move(source)), members_(std::move(members)) {}
  const ByteSource& source() const { return *source_; }

  // The entry's tensor on a device. Blocks are decoded lazily; what neither tuff nor a decoder
  // knows is Unsupported. IoError where the contents are damaged: a bool that is neither 0 nor 1, a
  // wrong checksum, strides that overlap.
  Tensor tensor(const TensorEntry& entry, const std::string& device) const;

 private:
  Tensor row_major(const TensorEntry& entry, DType dtype, const Sizes& sizes,
                   const std::string& device) const;
  Tensor strided(const TensorEntry& entry, const std::string& device) const;
  void read(const TensorEntry& entry, uint64_t offset, std::span<uint8_t> into) const;
  void read_elements(const TensorEntry& entry, uint64_t offset, std::span<uint8_t> into) const;
  bool reads_in_pieces(const TensorEntry& entry) const;

  std::unique_ptr<ByteSource> source_;
  std::vector<ZipMember> members_;
  mutable std::mutex mutex_;
  mutable std::unordered_set<uint32_t> verified_;  // members, under mutex_
};

}  // namespace tuff::io
