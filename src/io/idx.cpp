#include "io/idx.h"

#include <algorithm>

#include "base/check.h"
#include "base/os.h"
#include "io/formats/bytes.h"
#include "io/gzip.h"

namespace tuff::io {
namespace {

constexpr uint32_t kUnsignedByte = 0x08;  // the type byte of the magic number
constexpr uint64_t kMaxFileBytes = uint64_t{2} << 30;

void check_magic(ByteReader& r, uint32_t dims) {
  const auto magic = r.big<uint32_t>();
  const uint32_t expected = kUnsignedByte << 8 | dims;
  if (magic != expected) {
    fail_at(r.source(), 0,
            "magic number 0x{:08x} where 0x{:08x} (unsigned bytes, {} dimension{}) must be", magic,
            expected, dims, dims == 1 ? "" : "s");
  }
}

// Reads and judges the extents; the product of their sizes is at most kMaxFileBytes.
std::vector<uint32_t> read_extents(ByteReader& r, uint32_t dims) {
  std::vector<uint32_t> extents;
  uint64_t size = 1;
  for (uint32_t d = 0; d < dims; ++d) {
    const uint64_t at = r.offset();
    const auto extent = r.big<uint32_t>();
    const uint32_t limit = d == 0 ? kMaxImages : kMaxImageExtent;
    if (extent == 0 || extent > limit)
      fail_at(r.source(), at, "extent {} of dimension {} is outside 1..{}", extent, d, limit);
    extents.push_back(extent);
    size *= extent;  // at most 2^24 * 2^10 a step, checked before it can wrap
    if (size > kMaxFileBytes)
      fail_at(r.source(), at, "the extents {} make more than {} bytes",
              fmt::join(extents, " x "), kMaxFileBytes);
  }
  return extents;
}

uint64_t byte_count(const std::vector<uint32_t>& extents) {
  uint64_t size = 1;
  for (const uint32_t extent : extents) size *= extent;
  return size;
}

std::string find_idx(const std::string& folder, const std::string& stem) {
  const std::string plain = folder + "/" + stem;
  if (os::exists(plain)) return plain;
  if (os::exists(plain + ".gz")) return plain + ".gz";
  fail<IoError>("{}: no such file, nor with .gz; an IDX folder holds MNIST's four files", plain);
}

ImageSet load_set(const std::string& folder, const std::string& prefix) {
  const std::string image_path = find_idx(folder, prefix + "-images-idx3-ubyte");
  const std::string label_path = find_idx(folder, prefix + "-labels-idx1-ubyte");
  IdxArray images = read_idx(image_path, 3);
  IdxArray labels = read_idx(label_path, 1);
  if (images.extents[0] != labels.extents[0]) {
    fail<IoError>("{}: {} labels for the {} images of {}; there must be one each", label_path,
                  labels.extents[0], images.extents[0], image_path);
  }
  const auto bad = std::find_if(labels.bytes.begin(), labels.bytes.end(),
                                [](uint8_t label) { return label >= kImageClasses; });
  if (bad != labels.bytes.end()) {
    fail<IoError>("{}: label {} at index {} is outside 0..{}", label_path, *bad,
                  bad - labels.bytes.begin(), kImageClasses - 1);
  }
  return {images.extents[0], images.extents[1], images.extents[2], std::move(images.bytes),
          std::move(labels.bytes)};
}

}  // namespace

IdxArray parse_idx(std::span<const uint8_t> file, const std::string& name, uint32_t dims) {
  const MemoryBytes source(name, file);
  ByteReader r(source);
  check_magic(r, dims);
  IdxArray array;
  array.extents = read_extents(r, dims);
  const uint64_t size = byte_count(array.extents);
  if (r.left() != size)
    r.fail("{}: {} bytes, but the extents {} need exactly {}",
           r.left() < size ? "truncated" : "too long", source.size_bytes(),
           fmt::join(array.extents, " x "), r.offset() + size);
  array.bytes = r.bytes(size);
  return array;
}

IdxArray read_idx(const std::string& path, uint32_t dims) {
  const std::vector<uint8_t> file = os::read_file(path);
  if (!is_gzip(file)) return parse_idx(file, path, dims);
  const MemoryBytes compressed(path, file);
  std::vector<uint8_t> header(4 + 4 * size_t{dims});
  header.resize(GzipReader(compressed).read(header));
  const MemoryBytes declared(path, header);
  ByteReader r(declared);
  check_magic(r, dims);
  const uint64_t size = header.size() + byte_count(read_extents(r, dims));
  return parse_idx(gzip_decompress(file, path, size), path, dims);
}

ImageSplit load_idx_folder(const std::string& folder) {
  if (!os::is_directory(folder)) {
    fail<IoError>("{}: not a folder; --idx takes the folder of MNIST's four files", folder);
  }
  ImageSplit split{load_set(folder, "train"), load_set(folder, "t10k"), folder};
  if (split.train.rows != split.test.rows || split.train.cols != split.test.cols) {
    fail<IoError>("{}: training images of {} x {} but test images of {} x {}; they must agree",
                  folder, split.train.rows, split.train.cols, split.test.rows, split.test.cols);
  }
  return split;
}

}  // namespace tuff::io
