#include "io/formats/onnx_write.h"

#include <bit>
#include <span>

#include "base/check.h"
#include "io/formats/protobuf.h"

namespace tuff::io {
namespace {

using namespace onnx;

// What has been written of a message. Lengths of messages stand before them, so a message is made
// before what it is put into.
class Message {
 public:
  void number(uint32_t field, int64_t value) {
    tag(field, WireType::Varint);
    varint(uint64_t(value));
  }
  void real(uint32_t field, float value) {
    tag(field, WireType::Fixed32);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) text_ += char(bits >> shift & 0xff);
  }
  void text(uint32_t field, std::string_view value) {
    begin(field, value.size());
    text_ += value;
  }
  // Where it is empty nothing is written: readers take what is absent for that.
  void name(uint32_t field, std::string_view value) {
    if (!value.empty()) text(field, value);
  }
  void message(uint32_t field, Message inner) {
    begin(field, inner.size_bytes());
    for (OnnxPiece& p : inner.pieces_) append(std::move(p));
    text_ += inner.text_;
    elsewhere_ += inner.elsewhere_;
  }
  // Contents that another piece has.
  void contents(uint32_t field, size_t initializer, uint64_t size_bytes) {
    begin(field, size_bytes);
    append(initializer);
    elsewhere_ += size_bytes;
  }
  std::vector<OnnxPiece> pieces() && {
    close();
    return std::move(pieces_);
  }

 private:
  uint64_t size_bytes() const {
    uint64_t n = text_.size() + elsewhere_;
    for (const OnnxPiece& p : pieces_)
      if (const auto* bytes = std::get_if<std::string>(&p)) n += bytes->size();
    return n;
  }
  void tag(uint32_t field, WireType wire) { varint(uint64_t(field) << 3 | uint64_t(wire)); }
  void begin(uint32_t field, uint64_t size_bytes) {
    tag(field, WireType::Sized);
    varint(size_bytes);
  }
  void varint(uint64_t n) {
    for (; n >= 0x80; n >>= 7) text_ += char((n & 0x7f) | 0x80);
    text_ += char(n);
  }
  void append(OnnxPiece p) {
    if (const auto* bytes = std::get_if<std::string>(&p)) {
      text_ += *bytes;
      return;
    }
    close();
    pieces_.push_back(std::move(p));
  }
  void close() {
    if (!text_.empty()) pieces_.emplace_back(std::move(text_));
    text_.clear();
  }

  std::vector<OnnxPiece> pieces_;
  std::string text_;  // behind them
  uint64_t elsewhere_ = 0;
};

uint64_t contents_bytes(const TensorData& t) {
  uint64_t n = size_bits(t.type) / 8;
  for (const int64_t d : t.dims) n *= uint64_t(d);
  return n;
}

// Fields by number in the functions below: those of the messages in onnx.proto.

Message entry(std::string_view key, std::string_view value) {
  Message m;
  m.text(1, key);
  m.text(2, value);
  return m;
}

void put_external(Message& m, const FileRange& range) {
  m.message(13, entry("location", range.location));
  m.message(13, entry("offset", std::to_string(range.offset)));
  m.message(13, entry("length", std::to_string(range.size_bytes)));
  m.number(14, 1);
}

Message tensor_head(const TensorData& t) {
  Message m;
  for (const int64_t d : t.dims) m.number(1, d);
  m.number(2, int64_t(t.type));
  m.name(8, t.name);
  return m;
}

Message tensor(const TensorData& t) {
  Message m = tensor_head(t);
  if (t.range)
    put_external(m, *t.range);
  else
    m.text(9, {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()});
  return m;
}

Message type(const Type& t) {
  TUFF_CHECK(t.kind == Type::Kind::Tensor, "a type that is no tensor's");
  Message of;
  of.number(1, int64_t(t.element));
  if (t.shape) {
    Message shape;
    for (const Dimension& d : *t.shape) {
      Message extent;
      if (d.value)
        extent.number(1, *d.value);
      else
        extent.name(2, d.name);
      shape.message(1, std::move(extent));
    }
    of.message(2, std::move(shape));
  }
  Message m;
  m.message(1, std::move(of));
  return m;
}

Message value_info(const ValueInfo& v) {
  Message m;
  m.name(1, v.name);
  m.message(2, type(v.type));
  return m;
}

Message graph(const Graph& g, const std::function<bool(size_t)>& is_elsewhere);

Message attribute(const Attribute& a) {
  Message m;
  m.name(1, a.name);
  switch (a.kind) {
    case Attribute::Kind::Float: m.real(2, a.floats.at(0)); break;
    case Attribute::Kind::Int: m.number(3, a.ints.at(0)); break;
    case Attribute::Kind::String: m.text(4, a.strings.at(0)); break;
    case Attribute::Kind::Tensor: m.message(5, tensor(a.tensors.at(0))); break;
    case Attribute::Kind::Graph:
      m.message(6, graph(*a.graphs.at(0), [](size_t) { return false; }));
      break;
    case Attribute::Kind::Floats:
      for (const float f : a.floats) m.real(7, f);
      break;
    case Attribute::Kind::Ints:
      for (const int64_t i : a.ints) m.number(8, i);
      break;
    case Attribute::Kind::Strings:
      for (const std::string& s : a.strings) m.text(9, s);
      break;
    default: TUFF_CHECK(false, "an attribute of kind {}", int(a.kind));
  }
  m.number(20, int64_t(a.kind));
  return m;
}

Message node(const Node& n) {
  Message m;
  for (const std::string& i : n.inputs) m.text(1, i);
  for (const std::string& o : n.outputs) m.text(2, o);
  m.name(3, n.name);
  m.name(4, n.op_type);
  for (const Attribute& a : n.attributes) m.message(5, attribute(a));
  m.name(7, n.domain);
  return m;
}

Message graph(const Graph& g, const std::function<bool(size_t)>& is_elsewhere) {
  Message m;
  for (const Node& n : g.nodes) m.message(1, node(n));
  m.name(2, g.name);
  for (size_t i = 0; i < g.initializers.size(); i++) {
    const TensorData& t = g.initializers[i];
    if (t.range || !is_elsewhere(i)) {
      m.message(5, tensor(t));
      continue;
    }
    Message head = tensor_head(t);
    head.contents(9, i, contents_bytes(t));
    m.message(5, std::move(head));
  }
  for (const ValueInfo& v : g.inputs) m.message(11, value_info(v));
  for (const ValueInfo& v : g.outputs) m.message(12, value_info(v));
  return m;
}

}  // namespace

std::vector<OnnxPiece> encode_onnx(const onnx::Model& model,
                                   const std::function<bool(size_t)>& is_elsewhere) {
  Message m;
  m.number(1, model.ir_version);
  m.name(2, model.producer_name);
  m.name(3, model.producer_version);
  m.name(4, model.domain);
  m.message(7, graph(model.graph, is_elsewhere));
  for (const auto& [domain, version] : model.opsets) {
    Message opset;
    opset.text(1, domain);
    opset.number(2, version);
    m.message(8, std::move(opset));
  }
  for (const auto& [key, value] : model.metadata) m.message(14, entry(key, value));
  return std::move(m).pieces();
}

}  // namespace tuff::io
