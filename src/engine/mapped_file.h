// MappedFile: a file of which Buffers on the CPU are views, without a copy. Called by io and
// tensor.
#pragma once

#include <memory>

#include "base/os_data_file.h"
#include "engine/buffer.h"

namespace tuff::engine {

class MappedFile {
 public:
  // All Buffers of one object fail together, once the file has become too short for one of them or
  // a page could not be read; with `unchanged` also once it was written to since it was opened.
  MappedFile(std::shared_ptr<const os::DataFile> file, bool unchanged);
  // `count` elements from byte `offset` on. Null where memory of the file cannot stand for them and
  // they have to be read: on a device that does not take memory of the process, where elements are
  // not aligned, where the file system maps no files, and of no elements. IoError where the file
  // does not have them or has failed already.
  Ref<Buffer> view(const std::shared_ptr<Device>& device, DType dtype, int64_t count,
                   uint64_t offset) const;

 private:
  class State;
  std::shared_ptr<State> state_;
  Origin origin_;
};

}  // namespace tuff::engine
