#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tuff::io {
namespace {

constexpr int kGzipWindow = 15 + 16;  // largest window, gzip header and trailer
constexpr size_t kChunkBytes = size_t{1} << 18;

class InflateStream {
 public:
  explicit InflateStream(std::span<const uint8_t> in) : in_(in) {
    TUFF_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
  }
  ~InflateStream() { inflateEnd(&stream_); }
  InflateStream(const InflateStream&) = delete;

  // Appends at most one chunk to `out`; zlib's status.
  int step(std::vector<uint8_t>& out) {
    const size_t before = out.size();
    out.resize(before + kChunkBytes);
    refill();
    stream_.next_out = out.data() + before;
    stream_.avail_out = static_cast<uInt>(kChunkBytes);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    out.resize(before + kChunkBytes - stream_.avail_out);
    return status;
  }
  bool at_end() const { return stream_.avail_in == 0 && taken_ == in_.size(); }
  void next_member() { TUFF_CHECK(inflateReset(&stream_) == Z_OK); }
  const char* message() const { return stream_.msg ? stream_.msg : "no further detail"; }

 private:
  // avail_in has 32 bits, the input may have more.
  void refill() {
    if (stream_.avail_in != 0) return;
    const size_t part = std::min<size_t>(in_.size() - taken_, std::numeric_limits<int32_t>::max());
    stream_.next_in = const_cast<Bytef*>(in_.data() + taken_);
    stream_.avail_in = static_cast<uInt>(part);
    taken_ += part;
  }
  z_stream stream_{};
  std::span<const uint8_t> in_;
  size_t taken_ = 0;
};

}  // namespace

bool is_gzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

std::vector<uint8_t> gzip_decompress(std::span<const uint8_t> bytes, const std::string& name,
                                     uint64_t max_bytes) {
  InflateStream stream(bytes);
  std::vector<uint8_t> out;
  while (true) {
    const int status = stream.step(out);
    if (out.size() > max_bytes) {
      fail<IoError>("{}: inflates to more than {} bytes, the limit for this file", name, max_bytes);
    }
    if (status == Z_STREAM_END) {
      if (stream.at_end()) return out;
      stream.next_member();
    } else if (status == Z_BUF_ERROR) {
      fail<IoError>("{}: the gzip stream ends early after {} compressed bytes", name, bytes.size());
    } else if (status != Z_OK) {
      fail<IoError>("{}: damaged gzip stream ({}) after {} inflated bytes", name, stream.message(),
                    out.size());
    }
  }
}

std::vector<uint8_t> gzip_compress(std::span<const uint8_t> bytes) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    fail<InvalidArgument>("gzip: {} bytes are more than the 2 GiB that one call takes",
                          bytes.size());
  }
  z_stream stream{};
  TUFF_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<uint8_t> out(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  TUFF_CHECK(status == Z_STREAM_END, "deflate ended with status {}", status);
  return out;
}

}  // namespace tuff::io
