#include "io/formats/onnx_text.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace tuff::io {
namespace {

using namespace onnx;

constexpr size_t kShownBytes = 256;
constexpr const char* kTypeKinds[] = {"unknown",  "tensor", "sparse tensor",
                                      "sequence", "map",    "optional"};
constexpr const char* kAttributeKinds[] = {
    "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};

std::string quoted(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) out += fmt::format("{}'{}'", out.empty() ? "" : " ", shown(t));
  return out;
}

std::string hex(std::vector<uint8_t> bytes) {
  const bool all = bytes.size() <= kShownBytes;
  bytes.resize(std::min(bytes.size(), kShownBytes));
  return fmt::format("{:02x}{}", fmt::join(bytes, ""), all ? "" : "...");
}

class ModelText {
 public:
  explicit ModelText(const ByteSource& source) : source_(source) {}

  void add(const Model& m) {
    line("model of IR {}, version {}, by '{}' '{}', domain '{}'", m.ir_version, m.model_version,
         shown(m.producer_name), shown(m.producer_version), shown(m.domain));
    add(m.opsets);
    for (const auto& [key, value] : m.metadata)
      line("metadata '{}' '{}'", shown(key), shown(value));
    add(m.graph);
    for (const Function& f : m.functions) add(f);
  }
  void add(const char* what, const TensorData& t) {
    line("{} '{}' {} ({}){}", what, shown(t.name), name(t.type), fmt::join(t.dims, ", "),
         contents(t));
  }
  std::string text;

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text += std::string(2 * depth_, ' ') + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string contents(const TensorData& t) const {
    std::string out;
    if (t.range && t.range->location.empty()) {
      source_.require(t.range->offset, t.range->size_bytes);
      out = " raw " + hex(source_.bytes(t.range->offset,
                                        std::min<uint64_t>(t.range->size_bytes, kShownBytes)));
    } else if (t.range) {
      out = fmt::format(" in '{}' {}+{}", shown(t.range->location), t.range->offset,
                        t.range->size_bytes);
    }
    if (!t.bytes.empty()) out += " bytes " + hex(t.bytes);
    if (!t.strings.empty()) out += " strings " + quoted(t.strings);
    return out;
  }
  void add(const Opsets& opsets) {
    for (const auto& [domain, version] : opsets) line("opset '{}' {}", shown(domain), version);
  }
  void add(const Graph& g) {
    line("graph '{}'", shown(g.name));
    depth_++;
    for (const ValueInfo& v : g.inputs) line("input '{}' {}", shown(v.name), type(v.type));
    for (const ValueInfo& v : g.outputs) line("output '{}' {}", shown(v.name), type(v.type));
    for (const ValueInfo& v : g.values) line("value '{}' {}", shown(v.name), type(v.type));
    for (const TensorData& t : g.initializers) add("initializer", t);
    for (const SparseTensorData& s : g.sparse_initializers) add(s);
    for (const Node& n : g.nodes) add(n);
    depth_--;
  }
  void add(const Function& f) {
    line("function '{}' '{}' '{}': {} -> {}", shown(f.domain), shown(f.name), shown(f.overload),
         quoted(f.inputs), quoted(f.outputs));
    depth_++;
    line("attributes {}", quoted(f.attributes));
    add(f.opsets);
    for (const Attribute& a : f.defaults) add(a);
    for (const Node& n : f.nodes) add(n);
    depth_--;
  }
  void add(const Node& n) {
    line("node '{}' '{}' '{}' '{}': {} -> {}", shown(n.domain), shown(n.op_type), shown(n.overload),
         shown(n.name), quoted(n.inputs), quoted(n.outputs));
    depth_++;
    for (const Attribute& a : n.attributes) add(a);
    depth_--;
  }
  void add(const Attribute& a) {
    line("attribute '{}' {}{}", shown(a.name), kAttributeKinds[int(a.kind)],
         a.reference.empty() ? "" : " of '" + shown(a.reference) + "'");
    depth_++;
    if (!a.floats.empty()) line("{}", fmt::join(a.floats, " "));
    if (!a.ints.empty()) line("{}", fmt::join(a.ints, " "));
    if (!a.strings.empty()) line("{}", quoted(a.strings));
    for (const TensorData& t : a.tensors) add("tensor", t);
    for (const auto& g : a.graphs) add(*g);
    for (const SparseTensorData& s : a.sparse_tensors) add(s);
    for (const Type& t : a.types) line("{}", type(t));
    depth_--;
  }
  void add(const SparseTensorData& s) {
    line("sparse ({})", fmt::join(s.dims, ", "));
    depth_++;
    add("values", s.values);
    add("indices", s.indices);
    depth_--;
  }
  std::string type(const Type& t) const {
    std::string out = kTypeKinds[int(t.kind)];
    if (t.element != ElementType::Undefined) out += " " + name(t.element);
    if (t.shape) {
      std::vector<std::string> extents;
      for (const Dimension& d : *t.shape)
        extents.push_back(d.value          ? std::to_string(*d.value)
                          : d.name.empty() ? "?"
                                           : shown(d.name));
      out += fmt::format(" ({})", fmt::join(extents, ", "));
    }
    return t.inner ? out + " of " + type(*t.inner) : out;
  }

  const ByteSource& source_;
  size_t depth_ = 0;
};

}  // namespace

std::string text_of(const ByteSource& source, const onnx::TensorData& t) {
  ModelText out(source);
  out.add("tensor", t);
  return out.text;
}

std::string text_of(const ByteSource& source, const onnx::Model& model) {
  ModelText out(source);
  out.add(model);
  return out.text;
}

}  // namespace tuff::io
