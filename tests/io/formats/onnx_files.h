// Small ONNX files, made message by message: what the tests read and damage, and seeds of the fuzz
// target. Needs no room but base and the readers.
#pragma once

#include "io/formats/sample_files.h"

namespace tuff::io {

// A message of protocol buffers, field after field.
class MessageBuilder {
 public:
  MessageBuilder& number(uint32_t field, uint64_t value) { return tag(field, 0).varint(value); }
  MessageBuilder& fixed32(uint32_t field, float value) {
    tag(field, 5).b_.add(value);
    return *this;
  }
  MessageBuilder& fixed64(uint32_t field, double value) {
    tag(field, 1).b_.add(value);
    return *this;
  }
  MessageBuilder& text(uint32_t field, std::string_view value) {
    tag(field, 2).varint(value.size()).b_.text(value);
    return *this;
  }
  MessageBuilder& message(uint32_t field, const MessageBuilder& value) {
    return sized(field, value.bytes());
  }
  MessageBuilder& sized(uint32_t field, const Bytes& value) {
    tag(field, 2).varint(value.size()).b_.append(value);
    return *this;
  }
  MessageBuilder& packed(uint32_t field, const std::vector<int64_t>& values) {
    MessageBuilder all;
    for (const int64_t v : values) all.varint(uint64_t(v));
    return message(field, all);
  }
  template <class T>
  MessageBuilder& packed_fixed(uint32_t field, const std::vector<T>& values) {
    BytesBuilder all;
    for (const T v : values) all.add(v);
    return sized(field, all.bytes);
  }
  MessageBuilder& tag(uint32_t field, uint32_t wire) { return varint(uint64_t(field) << 3 | wire); }
  MessageBuilder& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) b_.add(uint8_t(value | 0x80));
    b_.add(uint8_t(value));
    return *this;
  }
  const Bytes& bytes() const { return b_.bytes; }

 private:
  BytesBuilder b_;
};

MessageBuilder onnx_node(const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs);
// A tensor without its elements.
MessageBuilder onnx_tensor(const std::string& name, int type, const std::vector<int64_t>& dims);
// An input or output; extents below 0 are not known.
MessageBuilder onnx_value(const std::string& name, int type, const std::vector<int64_t>& dims);
// IR version 8, operators of version 17.
Bytes onnx_file(const MessageBuilder& graph);

// y = x + w, w with contents in the file.
Bytes small_onnx();
// Every message and field that is read, and some that are not.
Bytes sample_onnx();
// Where the part of it ends that no model can do without.
size_t sample_onnx_required();

}  // namespace tuff::io
