#include "io/formats/onnx.h"

#include <algorithm>
#include <bit>

#include <fmt/ranges.h>

#include "base/contains.h"
#include "io/formats/index.h"
#include "io/formats/onnx_tensor.h"
#include "io/formats/protobuf.h"

namespace tuff::io {
namespace {

using namespace onnx;

constexpr int64_t kFirstIrWithOpsets = 3;
constexpr uint32_t kMaxFieldsBeforeGraph = 10'000;

// Fields by number in the functions below: those of the messages in onnx.proto.
class OnnxReader {
 public:
  explicit OnnxReader(const ByteSource& source) : r_(source) {}

  Model read() {
    r_.fields([&](uint32_t field) { read_model_field(field); });
    if (!has_graph_) fail_at(r_.source(), r_.source().size_bytes(), "the model has no graph");
    if (model_.ir_version < 1)
      fail_at(r_.source(), 0, "the model is of IR version {}", model_.ir_version);
    // Before version 3 of the format there was one set of operators.
    if (model_.opsets.empty() && model_.ir_version >= kFirstIrWithOpsets)
      fail_at(r_.source(), r_.source().size_bytes(), "the model imports no operators");
    if (model_.opsets.empty()) model_.opsets.emplace_back("", 1);
    return std::move(model_);
  }

 private:
  void read_model_field(uint32_t field) {
    switch (field) {
      case 1: model_.ir_version = r_.int64(); break;
      case 2: model_.producer_name = r_.text(); break;
      case 3: model_.producer_version = r_.text(); break;
      case 4: model_.domain = r_.text(); break;
      case 5: model_.model_version = r_.int64(); break;
      case 7:
        once(has_graph_, "graph");
        model_.graph = read_graph();
        break;
      case 8: read_opset(model_.opsets); break;
      case 14: model_.metadata.push_back(read_entry()); break;
      case 25: model_.functions.push_back(read_function()); break;
      default: break;
    }
  }
  // Of a message that stands once; parsers would merge two, which no writer writes.
  void once(bool& seen, const char* what) {
    if (seen) r_.fail("a second {}", what);
    seen = true;
  }
  // "ai.onnx" is the long name of "".
  std::string domain() {
    std::string text = r_.text();
    return text == "ai.onnx" ? "" : text;
  }
  void read_opset(Opsets& opsets) {
    const uint64_t at = r_.field_begin();
    std::string domain_name;
    int64_t version = 0;
    r_.message([&](uint32_t field) {
      if (field == 1) domain_name = domain();
      if (field == 2) version = r_.int64();
    });
    const auto same = std::ranges::find(opsets, domain_name, &Opsets::value_type::first);
    if (same == opsets.end())
      opsets.emplace_back(domain_name, version);
    else if (same->second != version)
      fail_at(r_.source(), at, "operators of '{}' are imported in the versions {} and {}",
              shown(domain_name), same->second, version);
  }
  std::pair<std::string, std::string> read_entry() {
    std::pair<std::string, std::string> out;
    r_.message([&](uint32_t field) {
      if (field == 1) out.first = r_.text();
      if (field == 2) out.second = r_.text();
    });
    return out;
  }

  Graph read_graph() {
    Graph g;
    r_.message([&](uint32_t field) {
      switch (field) {
        case 1: g.nodes.push_back(read_node()); break;
        case 2: g.name = r_.text(); break;
        case 5: g.initializers.push_back(read_tensor()); break;
        case 11: g.inputs.push_back(read_value_info()); break;
        case 12: g.outputs.push_back(read_value_info()); break;
        case 13: g.values.push_back(read_value_info()); break;
        case 15: g.sparse_initializers.push_back(read_sparse_tensor()); break;
        default: break;
      }
    });
    return g;
  }
  Node read_node() {
    Node n;
    r_.message([&](uint32_t field) {
      switch (field) {
        case 1: n.inputs.push_back(r_.text()); break;
        case 2: n.outputs.push_back(r_.text()); break;
        case 3: n.name = r_.text(); break;
        case 4: n.op_type = r_.text(); break;
        case 5: n.attributes.push_back(read_attribute()); break;
        case 7: n.domain = domain(); break;
        case 8: n.overload = r_.text(); break;
        default: break;
      }
    });
    return n;
  }
  Function read_function() {
    Function f;
    r_.message([&](uint32_t field) {
      switch (field) {
        case 1: f.name = r_.text(); break;
        case 4: f.inputs.push_back(r_.text()); break;
        case 5: f.outputs.push_back(r_.text()); break;
        case 6: f.attributes.push_back(r_.text()); break;
        case 7: f.nodes.push_back(read_node()); break;
        case 9: read_opset(f.opsets); break;
        case 10: f.domain = domain(); break;
        case 11: f.defaults.push_back(read_attribute()); break;
        case 13: f.overload = r_.text(); break;
        default: break;
      }
    });
    return f;
  }

  Attribute read_attribute() {
    const uint64_t at = r_.field_begin();
    Attribute a;
    uint32_t held = 0;  // kinds, as bits
    r_.message([&](uint32_t field) { read_attribute_field(a, field, held); });
    if (a.kind == Attribute::Kind::Undefined && std::has_single_bit(held))
      a.kind = Attribute::Kind(std::countr_zero(held));  // files of before the type was written
    if ((held & ~(1u << int(a.kind))) != 0)
      fail_at(r_.source(), at, "the attribute '{}' has a value of another kind than it says",
              shown(a.name));
    if (held == 0 && a.reference.empty()) set_default(a, at);
    return a;
  }
  // Writers of proto3 leave out a 0 and an empty text.
  void set_default(Attribute& a, uint64_t at) {
    switch (a.kind) {
      case Attribute::Kind::Float: a.floats.push_back(0); return;
      case Attribute::Kind::Int: a.ints.push_back(0); return;
      case Attribute::Kind::String: a.strings.emplace_back(); return;
      case Attribute::Kind::Tensor:
      case Attribute::Kind::Graph:
      case Attribute::Kind::SparseTensor:
      case Attribute::Kind::TypeProto:
        fail_at(r_.source(), at, "the attribute '{}' has no value", shown(a.name));
      default: return;
    }
  }
  void read_attribute_field(Attribute& a, uint32_t field, uint32_t& held) {
    using Kind = Attribute::Kind;
    const auto hold = [&](Kind k) { held |= 1u << int(k); };
    const auto hold_one = [&](Kind k, auto& list) {
      hold(k);
      list.clear();  // of several the last counts
    };
    switch (field) {
      case 1: a.name = r_.text(); break;
      case 2: hold_one(Kind::Float, a.floats), a.floats.push_back(r_.float32()); break;
      case 3: hold_one(Kind::Int, a.ints), a.ints.push_back(r_.int64()); break;
      case 4: hold_one(Kind::String, a.strings), a.strings.push_back(r_.text()); break;
      case 5: hold_one(Kind::Tensor, a.tensors), a.tensors.push_back(read_tensor()); break;
      case 6: hold_one(Kind::Graph, a.graphs), a.graphs.push_back(shared_graph()); break;
      case 7: hold(Kind::Floats), read_floats(a.floats); break;
      case 8:
        hold(Kind::Ints);
        r_.varints([&](uint64_t n) { a.ints.push_back(int64_t(n)); });
        break;
      case 9: hold(Kind::Strings), a.strings.push_back(r_.text()); break;
      case 10: hold(Kind::Tensors), a.tensors.push_back(read_tensor()); break;
      case 11: hold(Kind::Graphs), a.graphs.push_back(shared_graph()); break;
      case 14: hold_one(Kind::TypeProto, a.types), a.types.push_back(read_type()); break;
      case 15: hold(Kind::TypeProtos), a.types.push_back(read_type()); break;
      case 20: a.kind = read_attribute_kind(); break;
      case 21: a.reference = r_.text(); break;
      case 22:
        hold_one(Kind::SparseTensor, a.sparse_tensors);
        a.sparse_tensors.push_back(read_sparse_tensor());
        break;
      case 23:
        hold(Kind::SparseTensors);
        a.sparse_tensors.push_back(read_sparse_tensor());
        break;
      default: break;
    }
  }
  Attribute::Kind read_attribute_kind() {
    const int32_t kind = r_.int32();
    if (kind < 0 || kind > int(Attribute::Kind::TypeProtos))
      r_.fail("{} is no kind of attribute", kind);
    return Attribute::Kind(kind);
  }
  void read_floats(std::vector<float>& floats) {
    std::vector<uint8_t> bytes;
    r_.append_fixed32(bytes);
    const MemoryBytes source(r_.source().name(), bytes);
    for (ByteReader values(source); !values.done();) floats.push_back(values.little<float>());
  }
  std::shared_ptr<const Graph> shared_graph() {
    return std::make_shared<const Graph>(read_graph());
  }

  TensorData read_tensor() { return read_tensor_field(r_); }
  SparseTensorData read_sparse_tensor() {
    const uint64_t at = r_.field_begin();
    SparseTensorData s;
    bool has_values = false, has_indices = false;
    r_.message([&](uint32_t field) {
      switch (field) {
        case 1: once(has_values, "tensor of values"), s.values = read_tensor(); break;
        case 2: once(has_indices, "tensor of indices"), s.indices = read_tensor(); break;
        case 3: r_.varints([&](uint64_t n) { add_extent(s.dims, n); }); break;
        default: break;
      }
    });
    element_count(r_.source(), at, s.dims);
    const std::vector<int64_t>& index = s.indices.dims;
    const bool fits =
        s.values.dims.size() == 1 && !index.empty() && index[0] == s.values.dims[0] &&
        (index.size() == 1 || (index.size() == 2 && uint64_t(index[1]) == s.dims.size())) &&
        s.indices.type == ElementType::Int64;
    if (!fits)
      fail_at(r_.source(), at, "a sparse tensor of ({}) has values of ({}) and {} indices of ({})",
              fmt::join(s.dims, ", "), fmt::join(s.values.dims, ", "), onnx::name(s.indices.type),
              fmt::join(index, ", "));
    return s;
  }
  void add_extent(std::vector<int64_t>& dims, uint64_t extent) {
    if (dims.size() == kMaxAxes) r_.fail("more than {} axes", kMaxAxes);
    dims.push_back(int64_t(extent));
  }

  ValueInfo read_value_info() {
    ValueInfo v;
    r_.message([&](uint32_t field) {
      if (field == 1) v.name = r_.text();
      if (field == 2) v.type = read_type();
    });
    return v;
  }
  Type read_type() {
    Type t;
    r_.message([&](uint32_t field) {
      switch (field) {
        case 1: t = read_tensor_type(Type::Kind::Tensor); break;
        case 4: t = read_type_of_types(Type::Kind::Sequence, 0, 1); break;
        case 5: t = read_type_of_types(Type::Kind::Map, 1, 2); break;
        case 7: t = {}; break;  // opaque
        case 8: t = read_tensor_type(Type::Kind::SparseTensor); break;
        case 9: t = read_type_of_types(Type::Kind::Optional, 0, 1); break;
        default: break;
      }
    });
    return t;
  }
  Type read_type_of_types(Type::Kind kind, uint32_t key_field, uint32_t inner_field) {
    Type t{.kind = kind};
    r_.message([&](uint32_t field) {
      if (field == key_field) t.element = ElementType(r_.int32());
      if (field == inner_field) t.inner = std::make_shared<const Type>(read_type());
    });
    return t;
  }
  Type read_tensor_type(Type::Kind kind) {
    Type t{.kind = kind};
    r_.message([&](uint32_t field) {
      if (field == 1) t.element = ElementType(r_.int32());
      if (field == 2) t.shape = read_shape();
    });
    return t;
  }
  std::vector<Dimension> read_shape() {
    std::vector<Dimension> shape;
    r_.message([&](uint32_t field) {
      if (field != 1) return;
      if (shape.size() == kMaxAxes) r_.fail("more than {} axes", kMaxAxes);
      shape.push_back(read_dimension());
    });
    return shape;
  }
  // Exporters have written -1 for an extent that is not known.
  Dimension read_dimension() {
    Dimension d;
    r_.message([&](uint32_t field) {
      if (field == 1) {
        const int64_t value = r_.int64();
        d = {};
        if (value >= 0) d.value = value;
      }
      if (field == 2) d = {.value = std::nullopt, .name = r_.text()};
    });
    return d;
  }

  ProtobufReader r_;
  Model model_;
  bool has_graph_ = false;
};

constexpr uint32_t kIrVersionField = 1, kGraphField = 7;
constexpr uint32_t kNumberFields[] = {kIrVersionField, 5};
constexpr uint32_t kSizedFields[] = {2, 3, 4, 6, kGraphField, 8, 14, 20, 25, 26};

bool is_model_field(const ProtobufReader& r) {
  return (r.wire() == WireType::Varint && contains(kNumberFields, r.number())) ||
         (r.wire() == WireType::Sized && contains(kSizedFields, r.number()));
}

// Writers write fields in the order of their numbers. The graph may be cut off: it is for
// read_onnx() to say so.
bool begins_as_model(const ByteSource& source) {
  ProtobufReader r(source);
  for (uint32_t n = 0; n < kMaxFieldsBeforeGraph && r.next(); n++) {
    if (n == 0 && r.number() != kIrVersionField) return false;
    if (!is_model_field(r)) return false;
    const uint64_t length_at = r.field_begin() + 1;
    if (r.number() == kGraphField)
      return length_at < source.size_bytes() && source.bytes(length_at, 1)[0] != 0;
    r.skip();
  }
  return false;
}

}  // namespace

bool is_onnx(const ByteSource& source) {
  try {
    return begins_as_model(source);
  } catch (const IoError&) {
    return false;
  }
}

onnx::Model read_onnx(const ByteSource& source) { return OnnxReader(source).read(); }

onnx::TensorData read_onnx_tensor(const ByteSource& source) {
  ProtobufReader r(source);
  return read_tensor_file(r);
}

}  // namespace tuff::io
