// The reader of ONNX models: every message as it was written (a golden), what it refuses and by
// which words, and what it does not take for a model.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/formats/format.h"
#include "io/formats/onnx.h"
#include "io/formats/onnx_files.h"
#include "io/formats/onnx_text.h"
#include "io/scratch_folder.h"

namespace tuff::io {
namespace {

using onnx::ElementType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string onnx_error(const Bytes& bytes) {
  const MemoryBytes source("m", bytes);
  return error_text<IoError>([&] { read_onnx(source); });
}
std::string tensor_error(const MessageBuilder& tensor) {
  const MemoryBytes source("m", tensor.bytes());
  return error_text<IoError>([&] { read_onnx_tensor(source); });
}
onnx::TensorData tensor_of(const MessageBuilder& tensor) {
  return read_onnx_tensor(MemoryBytes("m", tensor.bytes()));
}

TEST(Onnx, EveryMessage) {
  const Bytes bytes = sample_onnx();
  const MemoryBytes source("m", bytes);
  const std::string text = text_of(source, read_onnx(source));
  const std::string path = TUFF_SOURCE_DIR "/tests/data/onnx_model.txt";
  if (std::getenv("TUFF_UPDATE_GOLDENS")) std::ofstream(path) << text;
  std::ifstream file(path);
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {}));
}

TEST(Onnx, ContentsStayInTheFile) {
  const Bytes bytes = small_onnx();
  const MemoryBytes source("m", bytes);
  const onnx::Model m = read_onnx(source);
  ASSERT_EQ(m.graph.initializers.size(), 1u);
  const onnx::TensorData& w = m.graph.initializers[0];
  ASSERT_TRUE(w.range && w.range->location.empty());
  EXPECT_THAT(source.bytes(w.range->offset, w.range->size_bytes),
              ElementsAre(0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0));
  EXPECT_EQ(m.opset(""), 17);
  EXPECT_EQ(m.opset("com.example"), 0);
  EXPECT_EQ(m.graph.nodes.at(0).attribute("axis"), nullptr);
}

// int32_data holds what is narrower, one number each; 4 and 2 bits by the byte.
TEST(Onnx, ElementsAsRawDataWouldHoldThem) {
  EXPECT_THAT(tensor_of(onnx_tensor("", 3, {2}).packed(5, {-1, 200})).bytes, ElementsAre(255, 200));
  EXPECT_THAT(tensor_of(onnx_tensor("", 4, {1}).packed(5, {0x1234})).bytes,
              ElementsAre(0x34, 0x12));
  EXPECT_THAT(tensor_of(onnx_tensor("", 9, {3}).packed(5, {5, 0, 1})).bytes, ElementsAre(1, 0, 1));
  EXPECT_THAT(tensor_of(onnx_tensor("", 22, {3}).packed(5, {0x21, 0x3})).bytes,
              ElementsAre(0x21, 0x3));
  EXPECT_THAT(tensor_of(onnx_tensor("", 12, {1}).packed(11, {0x80000001})).bytes,
              ElementsAre(1, 0, 0, 0x80));
  // Fields in any order.
  EXPECT_THAT(tensor_of(MessageBuilder().packed(5, {7}).number(2, 2).number(1, 1)).bytes,
              ElementsAre(7));
}

TEST(Onnx, TensorsThatContradictThemselves) {
  const auto floats = [](const std::vector<int64_t>& dims) {
    return onnx_tensor("t", 1, dims).packed_fixed<float>(4, {1, 2});
  };
  EXPECT_THAT(tensor_error(floats({3})), HasSubstr("of FLOAT (3) takes 12 bytes, but 8 are there"));
  EXPECT_THAT(tensor_error(floats({-2})), HasSubstr("an extent of -2"));
  EXPECT_THAT(tensor_error(floats({1LL << 40, 1LL << 40})), HasSubstr("more than 2^62 elements"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 1, {1LL << 61})), HasSubstr("has no elements"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 11, {1LL << 61}).text(9, "12345678")),
              HasSubstr("more than 2^63 bytes"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 7, {2}).packed_fixed<float>(4, {1, 2})),
              HasSubstr("of INT64 has its elements in float_data"));
  EXPECT_THAT(tensor_error(floats({2}).text(9, "12345678")),
              HasSubstr("elements in float_data and in raw_data"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 8, {1}).text(9, "a")),
              HasSubstr("strings in raw_data"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 8, {2}).text(6, "a")), HasSubstr("has 1 strings"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 2, {1}).packed(5, {256})),
              HasSubstr("the element 256"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 3, {1}).packed(5, {-129})),
              HasSubstr("the element -129"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 12, {1}).packed(11, {-1})),
              HasSubstr("the element 18446744073709551615"));
  EXPECT_THAT(tensor_error(MessageBuilder().number(1, 0)), HasSubstr("has no data type"));
  EXPECT_THAT(tensor_error(floats({2}).message(3, MessageBuilder().number(1, 0))),
              HasSubstr("a segment of a larger tensor"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 1, std::vector<int64_t>(65, 1))),
              HasSubstr("more than 64 axes"));
  EXPECT_THAT(tensor_error(onnx_tensor("t", 1, {2}).text(4, "123")), HasSubstr("no multiple of 4"));
}

MessageBuilder outside(const std::vector<std::pair<std::string, std::string>>& entries) {
  MessageBuilder t = onnx_tensor("w", 1, {2}).number(14, 1);
  for (const auto& [key, value] : entries)
    t.message(13, MessageBuilder().text(1, key).text(2, value));
  return t;
}

TEST(Onnx, ContentsOutside) {
  const onnx::TensorData t = tensor_of(outside({{"location", "a/b..c"}, {"offset", "16"}}));
  ASSERT_TRUE(t.range);
  EXPECT_EQ(t.range->location, "a/b..c");
  EXPECT_EQ(t.range->offset, 16u);
  EXPECT_EQ(t.range->size_bytes, 8u);
  for (const char* location : {"", "/etc/passwd", "..", "../w", "a/../../w", "a/..", "a\\b"})
    EXPECT_THAT(tensor_error(outside({{"location", location}})), HasSubstr("in the model's folder"))
        << location;
  EXPECT_THAT(tensor_error(outside({{"location", std::string("a\0b", 3)}})),
              HasSubstr("in the model's folder"));
  EXPECT_THAT(tensor_error(outside({{"location", "a"}, {"length", "7"}})),
              HasSubstr("takes 8 bytes, but 7 are there"));
  for (const char* number : {"", "-1", "0x10", "99999999999999999999", "8 "})
    EXPECT_THAT(tensor_error(outside({{"location", "a"}, {"offset", number}})),
                HasSubstr("which is no number"));
  EXPECT_THAT(tensor_error(outside({{"location", "a"}, {"offset", "9223372036854775807"}})),
              HasSubstr("begins at"));
  EXPECT_THAT(tensor_error(outside({{"location", "a"}}).text(9, "12345678")),
              HasSubstr("elements in raw_data and outside"));
}

MessageBuilder graph_with(uint32_t field, const MessageBuilder& value) {
  return MessageBuilder().message(field, value);
}
MessageBuilder node_with(const MessageBuilder& attribute) {
  return graph_with(1, onnx_node("A", {}, {}).message(5, attribute));
}

TEST(Onnx, ModelsThatContradictThemselves) {
  const MessageBuilder g = MessageBuilder().text(2, "g");
  const auto model = [&] { return MessageBuilder().number(1, 8).message(7, g); };
  const auto opset = [](int64_t v) { return MessageBuilder().number(2, uint64_t(v)); };
  EXPECT_THAT(onnx_error({}), HasSubstr("the model has no graph"));
  EXPECT_THAT(onnx_error(model().bytes()), HasSubstr("imports no operators"));
  EXPECT_THAT(onnx_error(MessageBuilder().message(7, g).message(8, opset(1)).bytes()),
              HasSubstr("IR version 0"));
  EXPECT_THAT(onnx_error(model().message(7, g).bytes()), HasSubstr("a second graph"));
  EXPECT_THAT(onnx_error(model().message(8, opset(1)).message(8, opset(2)).bytes()),
              HasSubstr("in the versions 1 and 2"));
  EXPECT_EQ(onnx_error(model().message(8, opset(1)).message(8, opset(1)).bytes()), "");
  EXPECT_EQ(onnx_error(MessageBuilder().number(1, 2).message(7, g).bytes()), "");  // before opsets

  const auto named = [] { return MessageBuilder().text(1, "a"); };
  EXPECT_THAT(onnx_error(onnx_file(node_with(named().number(20, 1).number(3, 1)))),
              HasSubstr("of another kind than it says"));
  EXPECT_THAT(onnx_error(onnx_file(node_with(named().number(3, 1).fixed32(2, 1)))),
              HasSubstr("of another kind than it says"));
  EXPECT_THAT(onnx_error(onnx_file(node_with(named().number(20, 15)))), HasSubstr("15 is no kind"));
  EXPECT_THAT(onnx_error(onnx_file(node_with(named().number(20, 4)))),
              HasSubstr("'a' has no value"));
  EXPECT_EQ(onnx_error(onnx_file(node_with(named().number(20, 4).text(21, "of the call")))), "");
  EXPECT_THAT(onnx_error(onnx_file(graph_with(15, MessageBuilder().packed(3, {4})))),
              HasSubstr("a sparse tensor of (4) has values of ()"));
}

TEST(Onnx, WireFormat) {
  const auto model = [](const MessageBuilder& first) {
    Bytes bytes = first.bytes();
    const Bytes rest = small_onnx();
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
  };
  EXPECT_EQ(onnx_error(model(MessageBuilder().number(1000, UINT64_MAX).fixed64(99, 1))), "");
  EXPECT_THAT(onnx_error(model(MessageBuilder().tag(9, 3).tag(9, 4))),
              StartsWith("m: at byte 0: field 9 is a group"));
  EXPECT_THAT(onnx_error(model(MessageBuilder().tag(9, 6))), HasSubstr("the wire type 6"));
  EXPECT_THAT(onnx_error(model(MessageBuilder().varint(2))), HasSubstr("2 is no tag of a field"));
  EXPECT_THAT(onnx_error(model(MessageBuilder().varint(1ULL << 40))),
              HasSubstr("no tag of a field"));
  EXPECT_THAT(onnx_error(model(MessageBuilder().number(7, 1))),
              HasSubstr("field 7 has the wire type 0 where 2 belongs"));
  EXPECT_THAT(onnx_error(model(MessageBuilder().tag(1, 0).sized(15, Bytes(12, 0xff)))),
              testing::Not(""));
  Bytes wide(11, 0xff);
  wide[0] = 1 << 3;
  EXPECT_THAT(onnx_error(wide), HasSubstr("a number of more than 64 bits"));
  // A length beyond its message, though within the file.
  EXPECT_THAT(onnx_error(onnx_file(graph_with(1, MessageBuilder().tag(1, 2).varint(5)))),
              HasSubstr("takes 5 bytes, but 0 of its message are left"));
  EXPECT_THAT(onnx_error(MessageBuilder().number(1, 8).tag(7, 2).varint(1ULL << 50).bytes()),
              HasSubstr("takes 1125899906842624 bytes, but 0 of its file are left"));
}

// Types and graphs in types and graphs, deeper than protobuf's own parsers go.
TEST(Onnx, Nesting) {
  const auto nested = [](int depth) {
    MessageBuilder type;
    for (int i = 0; i < depth; i++)
      type = MessageBuilder().message(4, MessageBuilder().message(1, type));
    return onnx_file(graph_with(11, MessageBuilder().text(1, "x").message(2, type)));
  };
  EXPECT_EQ(onnx_error(nested(40)), "");
  EXPECT_THAT(onnx_error(nested(60)), HasSubstr("nested deeper than 100"));
  const auto graphs = [](int depth) {
    MessageBuilder g;
    for (int i = 0; i < depth; i++)
      g = node_with(MessageBuilder().text(1, "body").number(20, 5).message(6, g));
    return onnx_file(g);
  };
  EXPECT_EQ(onnx_error(graphs(30)), "");
  EXPECT_THAT(onnx_error(graphs(40)), HasSubstr("nested deeper than 100"));
}

TEST(Onnx, IsToldFromOtherFiles) {
  const auto told = [](const Bytes& bytes) { return is_onnx(MemoryBytes("m", bytes)); };
  EXPECT_TRUE(told(small_onnx()));
  const Bytes whole = sample_onnx();
  EXPECT_TRUE(told(whole));
  EXPECT_TRUE(
      told(Bytes(whole.begin(), whole.begin() + 200)));  // cut off: for the reader to say so
  EXPECT_FALSE(told({}));
  EXPECT_FALSE(told(onnx_tensor("t", 1, {8, 2}).packed_fixed<float>(4, {1, 2}).bytes()));
  for (const SampleFile& f : sample_files()) EXPECT_FALSE(told(f.bytes)) << f.format;
  // The length of a header of safetensors whose bytes are those of an IR version and of a graph.
  EXPECT_FALSE(told(BytesBuilder().add(uint64_t{0x3a0808}).text("{").zeros(100).bytes));
  EXPECT_THAT(error_text<IoError>([] {
                const Bytes bytes = small_onnx();
                read_index(MemoryBytes("m", bytes), "x");
              }),
              HasSubstr("an ONNX model"));
}

}  // namespace
}  // namespace tuff::io
