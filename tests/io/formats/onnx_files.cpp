#include "io/formats/onnx_files.h"

namespace tuff::io {
namespace {

constexpr int kFloat = 1, kInt64 = 7, kString = 8;

MessageBuilder entry(const std::string& key, const std::string& value) {
  return MessageBuilder().text(1, key).text(2, value);
}
MessageBuilder opset(const std::string& domain, int64_t version) {
  return MessageBuilder().text(1, domain).number(2, uint64_t(version));
}
MessageBuilder attribute(const std::string& name, int kind) {
  return MessageBuilder().text(1, name).number(20, uint64_t(kind));
}
MessageBuilder tensor_type(int element) { return MessageBuilder().number(1, uint64_t(element)); }
MessageBuilder sparse(const std::string& name) {
  return MessageBuilder()
      .message(1, onnx_tensor(name, kFloat, {2}).packed_fixed<float>(4, {1.5f, -2}))
      .message(2, onnx_tensor("", kInt64, {2, 2}).packed(7, {0, 1, 2, 0}))
      .packed(3, {3, 4});
}
MessageBuilder inner_graph() {
  return MessageBuilder()
      .text(2, "inner")
      .message(1, onnx_node("Neg", {"x"}, {"inner_y"}))
      .message(12, onnx_value("inner_y", kFloat, {}));
}

// A node with attributes of every kind.
MessageBuilder attributes_node() {
  MessageBuilder n = onnx_node("Everything", {"x", "", "w"}, {"y", "z"});
  n.text(3, "node 1").text(7, "com.example").text(8, "second").text(6, "a doc string");
  n.message(5, attribute("f", 1).fixed32(2, 0.5f));
  n.message(5, attribute("i", 2).number(3, uint64_t(int64_t{-3})));
  n.message(5, attribute("s", 3).text(4, "text \xff"));
  n.message(5, attribute("t", 4).message(5, onnx_tensor("", kFloat, {}).fixed32(4, 7)));
  n.message(5, attribute("g", 5).message(6, inner_graph()));
  n.message(5, attribute("floats", 6).packed_fixed<float>(7, {1, -1}).fixed32(7, 2));
  n.message(5, attribute("ints", 7).packed(8, {1, -1}).number(8, 300));
  n.message(5, attribute("strings", 8).text(9, "a").text(9, ""));
  n.message(5, attribute("tensors", 9).message(10, onnx_tensor("none", kFloat, {0})));
  n.message(5, attribute("graphs", 10).message(11, inner_graph()).message(11, inner_graph()));
  n.message(5, attribute("sparse", 11).message(22, sparse("a")));
  n.message(5, attribute("sparse list", 12).message(23, sparse("b")).message(23, sparse("c")));
  n.message(5, attribute("type", 13).message(14, MessageBuilder().message(1, tensor_type(kFloat))));
  n.message(5,
            attribute("types", 14).message(15, MessageBuilder().message(8, tensor_type(kFloat))));
  n.message(5, attribute("zero", 2));                          // as writers of proto3 leave it
  n.message(5, MessageBuilder().text(1, "old").number(3, 1));  // as it was before the kind
  n.message(5, attribute("empty", 7));
  return n;
}

MessageBuilder external(const std::string& location) {
  return onnx_tensor("outside", 10, {2, 2})
      .message(13, entry("location", location))
      .message(13, entry("offset", "4096"))
      .message(13, entry("length", "8"))
      .message(13, entry("checksum", "0"))
      .number(14, 1);
}

void add_initializers(MessageBuilder& g) {
  g.message(5,
            onnx_tensor("raw", kFloat, {2}).text(9, std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)));
  g.message(5, onnx_tensor("floats", kFloat, {2}).packed_fixed<float>(4, {1, -2}));
  g.message(5, onnx_tensor("unpacked", kFloat, {2}).fixed32(4, 1).fixed32(4, -2));
  g.message(5, onnx_tensor("complex64", 14, {1}).packed_fixed<float>(4, {1, -2}));
  g.message(5, onnx_tensor("uint8", 2, {3}).packed(5, {0, 255, 7}));
  g.message(5, onnx_tensor("int8", 3, {2}).packed(5, {-128, 127}));
  g.message(5, onnx_tensor("uint16", 4, {2}).packed(5, {0, 65535}));
  g.message(5, onnx_tensor("int16", 5, {2}).packed(5, {-32768, 32767}));
  g.message(5, onnx_tensor("int32", 6, {2}).packed(5, {-2147483648, 2147483647}));
  g.message(5, onnx_tensor("int64", kInt64, {2}).packed(7, {INT64_MIN, INT64_MAX}));
  g.message(5, onnx_tensor("strings", kString, {2}).text(6, "a").text(6, "\n"));
  g.message(5, onnx_tensor("bool", 9, {3}).packed(5, {0, 1, 2}));
  g.message(5, onnx_tensor("float16", 10, {1}).packed(5, {0x3c00}));
  g.message(5, onnx_tensor("double", 11, {1}).packed_fixed<double>(10, {0.25}));
  g.message(5, onnx_tensor("doubles", 11, {2}).fixed64(10, 0.25).fixed64(10, -4));
  g.message(5, onnx_tensor("uint32", 12, {2}).packed(11, {0, 4294967295}));
  g.message(5, onnx_tensor("uint64", 13, {1}).packed(11, {-1}));
  g.message(5, onnx_tensor("complex128", 15, {}).packed_fixed<double>(10, {1, -2}));
  g.message(5, onnx_tensor("bfloat16", 16, {1}).packed(5, {0xbf80}));
  g.message(5, onnx_tensor("float8", 17, {2}).packed(5, {0x38, 0xb8}));
  g.message(5, onnx_tensor("uint4", 21, {3}).packed(5, {0x21, 0x3}));
  g.message(5, onnx_tensor("int2", 26, {5}).packed(5, {0xe4, 0x1}));
  g.message(5, onnx_tensor("scalar", kInt64, {}).number(7, 5));
  g.message(5, onnx_tensor("empty", kInt64, {3, 0}));
  g.message(5, onnx_tensor("future", 99, {3}).text(9, "abcd"));
  g.message(5, external("weights/sample.bin"));
  g.message(15, sparse("sparse"));
}

void add_values(MessageBuilder& g) {
  const MessageBuilder tensor = MessageBuilder().message(1, tensor_type(kFloat));
  const MessageBuilder shape = MessageBuilder()
                                   .message(1, MessageBuilder().text(2, "batch"))
                                   .message(1, MessageBuilder().number(1, 3))
                                   .message(1, MessageBuilder().text(3, "DATA_CHANNEL"))
                                   .message(1, MessageBuilder().number(1, uint64_t(int64_t{-1})));
  const auto value = [&](const std::string& name, uint32_t kind, const MessageBuilder& type) {
    return MessageBuilder()
        .text(1, name)
        .message(2, MessageBuilder().message(kind, type))
        .text(3, "");
  };
  g.message(11, value("x", 1, tensor_type(kFloat).message(2, shape)));
  g.message(11, value("any rank", 1, tensor_type(kInt64)));
  g.message(11, value("scalar", 1, tensor_type(9).message(2, MessageBuilder())));
  g.message(11, value("sequence", 4, MessageBuilder().message(1, tensor)));
  g.message(11, value("map", 5, MessageBuilder().number(1, kInt64).message(2, tensor)));
  g.message(11, value("opaque", 7, MessageBuilder().text(1, "d")));
  g.message(11, value("sparse", 8, tensor_type(kFloat).message(2, shape)));
  g.message(11, value("optional", 9, MessageBuilder().message(1, tensor)));
  g.message(11, MessageBuilder().text(1, "untyped"));
  g.message(12, onnx_value("y", kFloat, {-1, 3}));
  g.message(13, onnx_value("between", kFloat, {1}));
}

MessageBuilder function() {
  MessageBuilder f;
  f.text(1, "Twice").text(4, "a").text(5, "b").text(6, "alpha");
  f.message(7, onnx_node("Scale", {"a"}, {"b"})
                   .message(5, MessageBuilder().text(1, "by").number(20, 1).text(21, "alpha")));
  f.text(8, "a doc string").message(9, opset("ai.onnx", 17)).text(10, "com.example");
  f.message(11, attribute("beta", 1).fixed32(2, 2)).text(13, "overloaded");
  return f;
}

MessageBuilder sample_head() {
  MessageBuilder g;
  g.message(1, attributes_node()).text(2, "main");
  add_initializers(g);
  g.text(10, "a doc string");
  add_values(g);
  g.message(16, entry("a", "b"));
  MessageBuilder m;
  m.number(1, 8).text(2, "tests").text(3, "1.0").text(4, "org.example").number(5, 3);
  m.text(6, "a doc string").message(7, g).message(8, opset("", 17));
  return m;
}

}  // namespace

MessageBuilder onnx_node(const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
  MessageBuilder n;
  for (const std::string& i : inputs) n.text(1, i);
  for (const std::string& o : outputs) n.text(2, o);
  return n.text(4, op);
}

MessageBuilder onnx_tensor(const std::string& name, int type, const std::vector<int64_t>& dims) {
  MessageBuilder t;
  for (const int64_t d : dims) t.number(1, uint64_t(d));
  return t.number(2, uint64_t(type)).text(8, name);
}

MessageBuilder onnx_value(const std::string& name, int type, const std::vector<int64_t>& dims) {
  MessageBuilder shape;
  for (const int64_t d : dims)
    shape.message(1, d < 0 ? MessageBuilder() : MessageBuilder().number(1, uint64_t(d)));
  const MessageBuilder tensor = tensor_type(type).message(2, shape);
  return MessageBuilder().text(1, name).message(2, MessageBuilder().message(1, tensor));
}

Bytes onnx_file(const MessageBuilder& graph) {
  return MessageBuilder().number(1, 8).message(7, graph).message(8, opset("", 17)).bytes();
}

Bytes small_onnx() {
  MessageBuilder g;
  g.message(1, onnx_node("Add", {"x", "w"}, {"y"})).text(2, "small");
  g.message(5,
            onnx_tensor("w", kFloat, {2}).text(9, std::string_view("\0\0\x80\x3f\0\0\0\xc0", 8)));
  g.message(11, onnx_value("x", kFloat, {-1, 2})).message(12, onnx_value("y", kFloat, {-1, 2}));
  return onnx_file(g);
}

size_t sample_onnx_required() { return sample_head().bytes().size(); }

Bytes sample_onnx() {
  MessageBuilder m = sample_head();
  m.message(8, opset("com.example", 1)).message(14, entry("author", "nobody"));
  m.message(20, MessageBuilder().message(1, MessageBuilder())).message(25, function());
  // Unknown fields of every wire type.
  m.number(1000, 1).fixed32(1001, 1).fixed64(1002, 1).text(1003, "later");
  return m.bytes();
}

}  // namespace tuff::io
