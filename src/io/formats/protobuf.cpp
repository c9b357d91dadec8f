#include "io/formats/protobuf.h"

#include <utility>

namespace tuff::io {
namespace {

constexpr uint32_t kMaxMessageDepth = 100;
constexpr uint64_t kMaxMessageItems = 10'000'000;

}  // namespace

bool ProtobufReader::next() {
  begin_ = r_.offset();
  if (begin_ == end_) return false;
  const uint64_t tag = read_number(end_);
  number_ = uint32_t(tag >> 3);
  if (number_ == 0 || tag > UINT32_MAX) fail("{} is no tag of a field", tag);
  switch (tag & 7) {
    case 0:
    case 1:
    case 2:
    case 5: break;
    case 3:
    case 4: fail("field {} is a group, which no message of this format has", number_);
    default: fail("field {} has the wire type {}, which there is not", number_, tag & 7);
  }
  wire_ = WireType(tag & 7);
  taken_ = false;
  return true;
}

void ProtobufReader::take(WireType wire) {
  if (wire_ != wire)
    fail("field {} has the wire type {} where {} belongs", number_, int(wire_), int(wire));
  taken_ = true;
}

// Seven bits to a byte, the lowest first.
uint64_t ProtobufReader::read_number(uint64_t end) {
  const uint64_t at = r_.offset();
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (r_.offset() == end)
      fail_at(source(), at, "a number goes on beyond its {}, which ends at byte {}",
              end == source().size_bytes() ? "file" : "message", end);
    const uint8_t byte = r_.byte();
    if (shift == 63 && byte > 1) break;
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_at(source(), at, "a number of more than 64 bits");
}

ProtobufReader::Span ProtobufReader::sized() {
  take(WireType::Sized);
  const uint64_t size = read_number(end_);
  if (size > end_ - r_.offset())
    fail("field {} takes {} bytes, but {} of its {} are left", number_, size, end_ - r_.offset(),
         end_ == source().size_bytes() ? "file" : "message");
  return {r_.offset(), size};
}

void ProtobufReader::count_item() {
  if (++items_ > kMaxMessageItems) fail("more than {} messages and texts", kMaxMessageItems);
}

uint64_t ProtobufReader::enter() {
  const Span s = sized();
  count_item();
  if (++depth_ > kMaxMessageDepth) fail("messages nested deeper than {}", kMaxMessageDepth);
  return std::exchange(end_, s.begin + s.size_bytes);
}

void ProtobufReader::leave(uint64_t outer) {
  depth_--;
  end_ = outer;
  taken_ = true;
}

uint64_t ProtobufReader::varint() {
  take(WireType::Varint);
  return read_number(end_);
}

float ProtobufReader::float32() {
  take(WireType::Fixed32);
  if (end_ - r_.offset() < 4) fail("field {} goes on beyond its message", number_);
  return r_.little<float>();
}

std::string ProtobufReader::text() {
  const Span s = sized();
  count_item();
  return r_.text(s.size_bytes);
}

ProtobufReader::Span ProtobufReader::span() {
  const Span s = sized();
  r_.skip(s.size_bytes);
  return s;
}

void ProtobufReader::append(WireType wire, uint64_t width, std::vector<uint8_t>& bytes) {
  uint64_t size = width;
  if (wire_ == WireType::Sized) {
    size = sized().size_bytes;
    if (size % width != 0) fail("field {} has {} bytes, no multiple of {}", number_, size, width);
  } else {
    take(wire);
    if (end_ - r_.offset() < width) fail("field {} goes on beyond its message", number_);
  }
  const std::vector<uint8_t> more = r_.bytes(size);
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void ProtobufReader::skip() {
  switch (wire_) {
    case WireType::Varint: varint(); return;
    case WireType::Sized: span(); return;
    case WireType::Fixed32:
    case WireType::Fixed64: {
      const uint64_t width = wire_ == WireType::Fixed32 ? 4 : 8;
      if (end_ - r_.offset() < width) fail("field {} goes on beyond its message", number_);
      r_.skip(width);
      taken_ = true;
    }
  }
}

}  // namespace tuff::io
