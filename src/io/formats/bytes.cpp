#include "io/formats/bytes.h"

#include <algorithm>
#include <string_view>

namespace tuff::io {
namespace {

constexpr uint64_t kWindowBytes = 64 << 10;
constexpr size_t kShownCharacters = 80;

}  // namespace

void ByteSource::require(uint64_t offset, uint64_t count) const {
  if (offset > size_ || count > size_ - offset)
    fail_at(*this, offset, "{} bytes are wanted, but the file ends at byte {}", count, size_);
}

void ByteSource::read(uint64_t offset, std::span<uint8_t> into) const {
  require(offset, into.size());
  if (!into.empty()) read_inside(offset, into);
}

std::vector<uint8_t> ByteSource::bytes(uint64_t offset, uint64_t count) const {
  require(offset, count);
  std::vector<uint8_t> out(count);
  read(offset, out);
  return out;
}

void MemoryBytes::read_inside(uint64_t offset, std::span<uint8_t> into) const {
  std::memcpy(into.data(), bytes_.data() + offset, into.size());
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kShownCharacters)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", uint8_t(c));
  }
  return text.size() > kShownCharacters ? out + "..." : out;
}

ByteReader::ByteReader(const ByteSource& source, uint64_t begin, uint64_t end)
    : source_(source), at_(begin), end_(end) {
  if (begin > end || end > source.size_bytes())
    fail_at(source, begin, "a part that ends at byte {} is wanted, but the file has {} bytes", end,
            source.size_bytes());
}

void ByteReader::require_left(uint64_t count) const {
  if (count > left())
    fail("{} bytes are wanted, but {} are left{}", count, left(),
         end_ == source_.size_bytes() ? ": the file is truncated or its sizes are wrong"
                                      : " of this part: its sizes are wrong");
}

void ByteReader::take(std::span<uint8_t> into) {
  require_left(into.size());
  const bool inside = at_ >= window_at_ && at_ + into.size() <= window_at_ + window_.size();
  if (!inside && into.size() <= kWindowBytes) {
    window_ = source_.bytes(at_, std::min(kWindowBytes, left()));
    window_at_ = at_;
  }
  if (into.size() <= kWindowBytes)
    std::copy_n(window_.begin() + ptrdiff_t(at_ - window_at_), into.size(), into.begin());
  else
    source_.read(at_, into);
  at_ += into.size();
}

std::vector<uint8_t> ByteReader::bytes(uint64_t count) {
  require_left(count);
  std::vector<uint8_t> out(count);
  take(out);
  return out;
}

std::string ByteReader::text(uint64_t count) {
  require_left(count);
  std::string out(count, '\0');
  take({reinterpret_cast<uint8_t*>(out.data()), out.size()});
  return out;
}

std::string ByteReader::line() {
  std::string out;
  for (char c = char(byte()); c != '\n'; c = char(byte())) out += c;
  return out;
}

void ByteReader::skip(uint64_t count) {
  require_left(count);
  at_ += count;
}

}  // namespace tuff::io
