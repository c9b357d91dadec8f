// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a cursor that
// goes from field to field and into messages. Called by readers of formats that are written in it.
// Must never know what a field means; needs no more than base.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/formats/bytes.h"

namespace tuff::io {

// As a tag holds it. 3 and 4 open and close a group, which is refused.
enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Sized = 2, Fixed32 = 5 };

// IoError naming the byte where a field's length goes beyond its message, where a value is of
// another wire type than the caller takes, where messages nest deeper than 100 (what protobuf's own
// parsers refuse) and where messages and texts are more than 10 million.
class ProtobufReader {
 public:
  explicit ProtobufReader(const ByteSource& source) : r_(source), end_(source.size_bytes()) {}

  // Calls on_field(number) at each field of the message that the cursor is in. It takes the value
  // by one of the functions below; a value that it does not take is skipped.
  template <class OnField>
  void fields(const OnField& on_field) {
    while (next()) {
      on_field(number_);
      if (!taken_) skip();
    }
  }
  // Takes the value as a message: fields() of it.
  template <class OnField>
  void message(const OnField& on_field) {
    const uint64_t outer = enter();
    fields(on_field);
    leave(outer);
  }
  uint64_t varint();
  int64_t int64() { return int64_t(varint()); }
  int32_t int32() { return int32_t(uint32_t(varint())); }  // as parsers do: the low 32 bits
  float float32();
  std::string text();
  // Takes what has a length without reading it; its first byte is `begin`.
  struct Span {
    uint64_t begin, size_bytes;
  };
  Span span();
  // Take what stands here of a repeated field, packed or not: one number, or many.
  template <class Each>
  void varints(const Each& each) {
    if (wire_ == WireType::Varint) return each(varint());
    const Span s = sized();
    while (r_.offset() < s.begin + s.size_bytes) each(read_number(s.begin + s.size_bytes));
  }
  // The same of numbers of a fixed width, as they stand in the file: little-endian.
  void append_fixed32(std::vector<uint8_t>& bytes) { append(WireType::Fixed32, 4, bytes); }
  void append_fixed64(std::vector<uint8_t>& bytes) { append(WireType::Fixed64, 8, bytes); }

  // By hand instead of fields(): false at the end of the message.
  bool next();
  void skip();
  uint32_t number() const { return number_; }
  WireType wire() const { return wire_; }
  uint64_t field_begin() const { return begin_; }  // of the field's tag
  const ByteSource& source() const { return r_.source(); }
  // At the field's tag.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> reason, Args&&... args) const {
    fail_at(source(), begin_, reason, std::forward<Args>(args)...);
  }

 private:
  uint64_t enter();
  void leave(uint64_t outer);
  void take(WireType wire);
  uint64_t read_number(uint64_t end);
  Span sized();
  void append(WireType wire, uint64_t width, std::vector<uint8_t>& bytes);
  void count_item();

  ByteReader r_;
  uint64_t end_;  // of the message
  uint64_t begin_ = 0, items_ = 0;
  uint32_t number_ = 0, depth_ = 0;
  WireType wire_ = WireType::Varint;
  bool taken_ = true;
};

}  // namespace tuff::io
