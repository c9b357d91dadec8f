#include "io/idx_files.h"

#include <zlib.h>

#include <limits>

#include "base/check.h"
#include "base/os.h"

namespace tuff::io {
namespace {

constexpr uint32_t kUnsignedByte = 0x08;  // the type byte of the magic number

void append_big_endian(std::vector<uint8_t>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

void write_set(const std::string& folder, const std::string& prefix, const ImageSet& set,
               const std::string& ending) {
  write_idx(folder + "/" + prefix + "-images-idx3-ubyte" + ending,
            {{set.count, set.rows, set.cols}, set.pixels});
  write_idx(folder + "/" + prefix + "-labels-idx1-ubyte" + ending, {{set.count}, set.labels});
}

}  // namespace

std::vector<uint8_t> gzip_compress(std::span<const uint8_t> bytes) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    fail<InvalidArgument>("gzip: {} bytes are more than the 2 GiB that one call takes",
                          bytes.size());
  }
  constexpr int kWindow = 15 + 16;  // largest window, gzip header and trailer
  z_stream stream{};
  TUFF_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindow, 8,
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

std::vector<uint8_t> encode_idx(const IdxArray& array) {
  std::vector<uint8_t> file;
  append_big_endian(file, kUnsignedByte << 8 | static_cast<uint32_t>(array.extents.size()));
  for (uint32_t extent : array.extents) append_big_endian(file, extent);
  file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  return file;
}

void write_idx(const std::string& path, const IdxArray& array) {
  const std::vector<uint8_t> file = encode_idx(array);
  os::write_file(path, path.ends_with(".gz") ? gzip_compress(file) : file);
}

void write_idx_folder(const std::string& folder, const ImageSplit& split, bool gzip) {
  os::make_directories(folder);
  const std::string ending = gzip ? ".gz" : "";
  write_set(folder, "train", split.train, ending);
  write_set(folder, "t10k", split.test, ending);
}

}  // namespace tuff::io
