// BinaryCache: what the driver made of one source, in a file of the user's cache folder, so that it
// is built once per machine. A file is used only if its header names this source, device, driver
// and options, and its checksum fits; anything else is ignored and made anew. Used by the loader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/opencl/context.h"

namespace tuff::devices::opencl {

// The file: a header with both hashes, then the driver's bytes.
std::vector<uint8_t> wrap_binary(uint64_t key, std::span<const uint8_t> data);
// The bytes within, or nullopt with the reason in `why`.
std::optional<std::span<const uint8_t>> unwrap_binary(uint64_t key, std::span<const uint8_t> file,
                                                      std::string* why);

class BinaryCache {
 public:
  BinaryCache(const Context& context, const std::string& source);
  cl_program load() const;  // built, or null
  void store(cl_program program) const noexcept;
  const std::string& path() const { return path_; }  // empty: no file is kept

 private:
  const Context& context_;
  uint64_t key_ = 0;
  std::string path_;
};

}  // namespace tuff::devices::opencl
