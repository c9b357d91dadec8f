#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/os_data_file.h"

namespace tuff::io {
namespace {

constexpr int kGzipWindow = 15 + 16;  // largest window, gzip header and trailer
constexpr uint64_t kPieceBytes = uint64_t{1} << 18;
constexpr uint64_t kHeadBytes = uint64_t{128} << 10;  // what readers of formats look at first
constexpr uint64_t kMaxRatio = 1032;

}  // namespace

class GzipReader::Inflater {
 public:
  explicit Inflater(const ByteSource& in) : in_(in) {
    TUFF_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  // Bytes of `out` that were filled; `at` is the first one's place.
  size_t step(std::span<uint8_t> out, uint64_t at) {
    refill();
    const size_t part = std::min<size_t>(out.size(), std::numeric_limits<int32_t>::max());
    stream_.next_out = out.data();
    stream_.avail_out = uInt(part);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const size_t made = part - stream_.avail_out;
    if (status == Z_STREAM_END) {
      ended_ = stream_.avail_in == 0 && taken_ == in_.size_bytes();
      if (!ended_) TUFF_CHECK(inflateReset(&stream_) == Z_OK);
    } else if (status == Z_BUF_ERROR) {
      fail<IoError>("{}: the gzip stream ends early after {} compressed bytes", in_.name(),
                    in_.size_bytes());
    } else if (status != Z_OK) {
      fail<IoError>("{}: damaged gzip stream ({}) after {} inflated bytes", in_.name(),
                    stream_.msg ? stream_.msg : "no further detail", at + made);
    }
    return made;
  }
  bool ended() const { return ended_; }

 private:
  void refill() {
    if (stream_.avail_in != 0 || taken_ == in_.size_bytes()) return;
    piece_ = in_.bytes(taken_, std::min(kPieceBytes, in_.size_bytes() - taken_));
    taken_ += piece_.size();
    stream_.next_in = piece_.data();
    stream_.avail_in = uInt(piece_.size());
  }
  const ByteSource& in_;
  z_stream stream_{};
  std::vector<uint8_t> piece_;
  uint64_t taken_ = 0;
  bool ended_ = false;
};

GzipReader::GzipReader(const ByteSource& source)
    : source_(source), inflater_(std::make_unique<Inflater>(source_)) {}
GzipReader::~GzipReader() = default;

size_t GzipReader::read(std::span<uint8_t> into) {
  size_t got = 0;
  while (got < into.size() && !inflater_->ended()) {
    const size_t made = inflater_->step(into.subspan(got), at_);
    got += made;
    at_ += made;
  }
  return got;
}

uint64_t GzipReader::pass(uint64_t count) {
  std::vector<uint8_t> piece(std::min(count, kPieceBytes));
  uint64_t passed = 0;
  while (passed < count) {
    const size_t wanted = size_t(std::min<uint64_t>(piece.size(), count - passed));
    const size_t got = read(std::span(piece).first(wanted));
    passed += got;
    if (got < wanted) break;
  }
  return passed;
}

GzipBytes::GzipBytes(std::shared_ptr<const ByteSource> compressed, uint64_t size_bytes)
    : ByteSource(compressed->name(), size_bytes), compressed_(std::move(compressed)) {}

void GzipBytes::read_on(GzipReader& reader, std::span<uint8_t> into) const {
  const size_t got = reader.read(into);
  uint8_t more;
  if (got < into.size())
    fail_at(*this, reader.offset(), "it inflates to {} bytes less than its header declares",
            size_bytes() - reader.offset());
  if (reader.offset() == size_bytes() && reader.read({&more, 1}) != 0)
    fail_at(*this, size_bytes(), "it inflates to more than the {} bytes that its header declares",
            size_bytes());
  if (const auto file = compressed_->file()) file->require_unchanged();
}

void GzipBytes::keep_all() const {
  std::vector<uint8_t> all(size_bytes());
  GzipReader reader(*compressed_);
  read_on(reader, all);
  all_ = std::move(all);
  reader_.reset();
}

void GzipBytes::read_inside(uint64_t offset, std::span<uint8_t> into) const {
  const std::lock_guard lock(mutex_);
  const uint64_t end = offset + into.size();
  if (head_.empty()) {
    head_.resize(std::min(kHeadBytes, size_bytes()));
    reader_.emplace(*compressed_);
    read_on(*reader_, head_);
  }
  if (end <= head_.size()) {
    std::copy_n(head_.begin() + ptrdiff_t(offset), into.size(), into.begin());
    return;
  }
  if (all_.empty() && offset < head_.size()) {
    if (reader_->offset() != head_.size()) {  // once more from the beginning
      reader_.emplace(*compressed_);
      reader_->pass(head_.size());
    }
    const size_t part = head_.size() - offset;
    std::copy_n(head_.begin() + ptrdiff_t(offset), part, into.begin());
    return read_on(*reader_, into.subspan(part));
  }
  if (all_.empty() && offset < reader_->offset()) keep_all();
  if (!all_.empty()) {
    std::copy_n(all_.begin() + ptrdiff_t(offset), into.size(), into.begin());
    return;
  }
  reader_->pass(offset - reader_->offset());
  read_on(*reader_, into);
}

bool is_gzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

bool is_gzip(const ByteSource& source) {
  return is_gzip(source.bytes(0, std::min<uint64_t>(2, source.size_bytes())));
}

uint64_t most_inflated_bytes(uint64_t compressed_bytes) {
  return compressed_bytes > UINT64_MAX / kMaxRatio ? UINT64_MAX : compressed_bytes * kMaxRatio;
}

uint64_t inflated_bytes(const ByteSource& compressed, uint64_t max_bytes) {
  GzipReader reader(compressed);
  const uint64_t count = reader.pass(max_bytes);
  uint8_t more;
  if (count == max_bytes && reader.read({&more, 1}) != 0)
    fail<IoError>("{}: inflates to more than {} bytes, the limit for this file", compressed.name(),
                  max_bytes);
  return count;
}

std::vector<uint8_t> gzip_decompress(std::span<const uint8_t> bytes, const std::string& name,
                                     uint64_t max_bytes) {
  const MemoryBytes compressed(name, bytes);
  std::vector<uint8_t> out(inflated_bytes(compressed, max_bytes));
  GzipReader(compressed).read(out);
  return out;
}

}  // namespace tuff::io
