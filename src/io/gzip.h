// gzip streams (RFC 1952), through zlib. Called by idx and tensor_file; tests write damaged ones.
// Must never trust a size that the stream announces, nor grow with what it inflates to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/formats/bytes.h"

namespace tuff::io {

bool is_gzip(std::span<const uint8_t> bytes);
bool is_gzip(const ByteSource& source);

// All members one after the other, from the first byte on. The source outlives it.
class GzipReader {
 public:
  explicit GzipReader(const ByteSource& source);
  ~GzipReader();
  // Bytes that were read: fewer than asked for at the end alone. IoError where the stream is damaged
  // or ends early.
  size_t read(std::span<uint8_t> into);
  uint64_t offset() const { return at_; }  // of what comes next, inflated
  uint64_t pass(uint64_t count);           // bytes that were passed

 private:
  class Inflater;
  const ByteSource& source_;
  std::unique_ptr<Inflater> inflater_;
  uint64_t at_ = 0;
};

// What a compressed file inflates to, read in order by pieces: nothing is kept of it until a
// read goes back to what is not its beginning, which then takes all of it into memory. Thread-safe.
class GzipBytes : public ByteSource {
 public:
  // `size_bytes`: of what it inflates to. IoError from the read of its last byte where the stream
  // has fewer or more.
  GzipBytes(std::shared_ptr<const ByteSource> compressed, uint64_t size_bytes);

 private:
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override;
  void read_on(GzipReader& reader, std::span<uint8_t> into) const;
  void keep_all() const;
  std::shared_ptr<const ByteSource> compressed_;
  mutable std::mutex mutex_;
  mutable std::vector<uint8_t> head_, all_;  // under mutex_, as reader_ is
  mutable std::optional<GzipReader> reader_;
};

// What deflate can make of so many bytes at most: one bit each for a length of 258 and its distance.
uint64_t most_inflated_bytes(uint64_t compressed_bytes);
// How many bytes it inflates to, without keeping them. IoError above max_bytes.
uint64_t inflated_bytes(const ByteSource& compressed, uint64_t max_bytes);
// All of it, counted before any memory is taken.
std::vector<uint8_t> gzip_decompress(std::span<const uint8_t> bytes, const std::string& name,
                                     uint64_t max_bytes);

}  // namespace tuff::io
