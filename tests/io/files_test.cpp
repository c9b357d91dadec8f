// load() and save(): what is written is read back, over dtypes, shapes and formats; what files may
// lie about is refused by name.
#include <algorithm>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuff/io.h>
#include "base/check.h"
#include "base/os.h"
#include "io/formats/npy.h"
#include "io/formats/sample_files.h"
#include "io/formats/zip.h"
#include "io/scratch_folder.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr DType kTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,
                            DType::I32,  DType::U32, DType::I64, DType::U64, DType::F16,
                            DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN, DType::F8E5M2};
const std::vector<std::vector<int64_t>> kShapes = {
    {}, {1}, {7}, {0}, {3, 0, 2}, {2, 3, 5}, {1, 1, 1, 1}, {5, 1, 2, 1, 3}};

Bytes random_contents(DType t, size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes out(size);
  for (uint8_t& b : out) b = uint8_t(t == DType::Bool ? random() & 1 : random());
  return out;
}
size_t bytes_of(const std::vector<int64_t>& shape, DType t) {
  size_t n = size_bytes(t);
  for (const int64_t e : shape) n *= size_t(e);
  return n;
}
Bytes contents(const Tensor& t) {
  std::vector<int64_t> shape;
  for (const Size& s : t.sizes()) shape.push_back(int64_t(s));
  Bytes out(bytes_of(shape, t.dtype()));
  t.copy_to(out.data(), out.size());
  return out;
}
Tensor tensor_of(DType t, const std::vector<int64_t>& shape, const Bytes& bytes) {
  return Tensor::from_bytes(bytes.data(), Sizes(shape.begin(), shape.end()), {t, "CPU"});
}
std::string load_error(const ScratchFolder& folder, const Bytes& bytes,
                       const std::string& name = "x") {
  const std::string path = folder.write(name, bytes);
  return error_text<IoError>([&] {
    const TensorDict d = load(path, {.device = "CPU"});
    for (const std::string& n : d.names()) d.at(n).data_ptr();
  });
}

struct Variant {
  const char *name, *file;
  bool compress;
};
class RoundTrip : public testing::TestWithParam<Variant> {};

TEST_P(RoundTrip, EveryTypeAndShape) {
  const ScratchFolder folder;
  const bool numpy = std::string(GetParam().file).ends_with("npz");
  TensorDict out;
  std::vector<Bytes> wanted;
  for (const DType t : kTypes) {
    if (numpy && (t == DType::BF16 || is_float8(t))) continue;
    for (const auto& shape : kShapes) {
      wanted.push_back(random_contents(t, bytes_of(shape, t), uint32_t(wanted.size())));
      out.set(fmt::format("{}/{}", name(t), wanted.size()), tensor_of(t, shape, wanted.back()));
    }
  }
  save(folder.path(GetParam().file), out, {.compress = GetParam().compress});
  EXPECT_EQ(os::list_directory(folder.path()).size(), 1u);
  const TensorDict in = load(folder.path(GetParam().file), {.device = "CPU"});
  ASSERT_EQ(in.names(), out.names());
  const std::vector<TensorInfo> before = out.info(), after = in.info();
  for (size_t i = 0; i < wanted.size(); i++) {
    EXPECT_EQ(after[i].dtype, before[i].dtype) << after[i].name;
    EXPECT_EQ(after[i].shape, before[i].shape) << after[i].name;
    EXPECT_EQ(contents(in.at(after[i].name)), wanted[i]) << after[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundTrip,
                         testing::Values(Variant{"safetensors", "a.safetensors", false},
                                         Variant{"npz", "a.npz", false},
                                         Variant{"npz_deflated", "a.npz", true}),
                         [](const auto& info) { return info.param.name; });

TEST(Npy, EveryTypeAndShape) {
  const ScratchFolder folder;
  for (const DType t : kTypes) {
    for (const auto& shape : kShapes) {
      if (t == DType::BF16 || is_float8(t)) continue;
      const Bytes bytes = random_contents(t, bytes_of(shape, t), 3);
      TensorDict out;
      out.set("anything", tensor_of(t, shape, bytes));
      save(folder.path("one.npy"), out);
      const TensorDict in = load(folder.path("one.npy"), {.device = "CPU"});
      EXPECT_THAT(in.names(), ElementsAre("one"));
      EXPECT_EQ(in.info()[0].shape, shape);
      EXPECT_EQ(contents(in["one"]), bytes);
    }
  }
}

TEST(Npy, BigEndianColumnMajorAndVersions) {
  const ScratchFolder folder;
  const Bytes data = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
  for (const int version : {1, 2, 3}) {
    folder.write("f.npy", npy_file("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3L)}",
                                   data, version));
    const Tensor t = load(folder.path("f.npy"), {.device = "CPU"})["f"];
    EXPECT_THAT(t.to_vector<int16_t>(), ElementsAre(1, 3, 5, 2, 4, 6));
  }
}

TEST(Npy, WhatItRefuses) {
  const ScratchFolder folder;
  const auto error = [&](const std::string& header, size_t bytes) {
    return load_error(folder, npy_file(header, Bytes(bytes)));
  };
  const auto shaped = [&](const std::string& shape, size_t bytes, const char* type = "<f4") {
    return error(
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape),
        bytes);
  };
  EXPECT_EQ(shaped("(2,)", 8), "");
  EXPECT_THAT(shaped("(2,)", 7), AllOf(HasSubstr("truncated"), HasSubstr("at byte ")));
  EXPECT_THAT(shaped("(2,)", 9), HasSubstr("too long"));
  EXPECT_THAT(shaped("(-2,)", 8), HasSubstr("an extent of -2"));
  EXPECT_THAT(shaped("(4611686018427387904, 4)", 0), HasSubstr("more than 2^62 elements"));
  EXPECT_THAT(shaped("(0, 4611686018427387904, 4)", 0), HasSubstr("more than 2^62 elements"));
  EXPECT_THAT(shaped("(99999999999999999999,)", 0), HasSubstr("above 2^63 - 1"));
  EXPECT_THAT(shaped("(2,)", 16, "<c8"), HasSubstr("'<c8' is not read"));
  EXPECT_THAT(shaped("(2,)", 16, "|O"), HasSubstr("'|O' is not read"));
  EXPECT_THAT(error("{'descr': [('a', '<f4')], 'shape': (1,)}", 4), HasSubstr("structured"));
  EXPECT_THAT(error("{'descr': '<f4', 'shape': (1,)}", 4), HasSubstr("lacks"));
  Bytes flag = npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", {1, 2});
  EXPECT_THAT(load_error(folder, flag), HasSubstr("a bool of 2"));
}

TEST(Safetensors, SampleAndMetadata) {
  const ScratchFolder folder;
  const TensorDict d = load(folder.write("s", sample_safetensors()), {.device = "CPU"});
  EXPECT_EQ(d.format(), "safetensors");
  EXPECT_THAT(d.names(), ElementsAre("w", "b", "none", "one"));
  EXPECT_EQ(d.metadata("note")->str(), "\"a \xc3\xa9\"");
  save(folder.path("again.safetensors"), d);
  const TensorDict again = load(folder.path("again.safetensors"), {.device = "CPU"});
  EXPECT_EQ(again.metadata(), d.metadata());
  for (const std::string& n : d.names()) EXPECT_EQ(contents(again[n]), contents(d[n])) << n;
}

TEST(Safetensors, WhatTheFormatForbids) {
  const ScratchFolder folder;
  const auto error = [&](const std::string& header, size_t bytes) {
    return load_error(folder, safetensors_file(header, bytes));
  };
  const auto u8 = [](const char* name, int begin, int end) {
    return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
                       end - begin, begin, end);
  };
  EXPECT_EQ(error("{" + u8("a", 0, 4) + "," + u8("b", 4, 6) + "}", 6), "");
  EXPECT_THAT(error("{" + u8("a", 0, 4) + "," + u8("b", 3, 6) + "}", 6), HasSubstr("overlap"));
  EXPECT_THAT(error("{" + u8("a", 0, 4) + "," + u8("b", 5, 6) + "}", 6), HasSubstr("a hole"));
  EXPECT_THAT(error("{" + u8("a", 0, 4) + "}", 3), HasSubstr("truncated"));
  EXPECT_THAT(error("{" + u8("a", 0, 4) + "}", 5), HasSubstr("1 bytes follow"));
  EXPECT_THAT(error("{" + u8("a", 0, 4) + "," + u8("a", 4, 8) + "}", 8), HasSubstr("twice"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("takes 8 bytes"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("'F33', which is none of BOOL, U8"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
              HasSubstr("data_offsets [4, 0]"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("a value"));
  EXPECT_THAT(
      error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      HasSubstr("2^62"));
  EXPECT_THAT(error(R"({"a":[[[[[[]]]]]]})", 0), HasSubstr("none belongs"));
  EXPECT_THAT(error("{", 0), AllOf(HasSubstr("no JSON: syntax error"), Not(HasSubstr("["))));
  Bytes huge = sample_safetensors();
  huge[4] = 1;
  EXPECT_THAT(load_error(folder, huge), HasSubstr("the format allows 100000000"));
}

TEST(Safetensors, Shards) {
  const ScratchFolder folder;
  TensorDict a, b;
  a.set("x", Tensor::from({1, 2}, {2}, {.device = "CPU"}));
  a.set("unused", Tensor::from({9}, {1}, {.device = "CPU"}));
  b.set("y", Tensor::from({3}, {1}, {.device = "CPU"}));
  save(folder.path("m-1.safetensors"), a);
  save(folder.path("m-2.safetensors"), b);
  const auto index = [&](const std::string& map) {
    return folder.write("m.safetensors.index.json",
                        R"({"metadata":{"total_size":12},"weight_map":)" + map + "}");
  };
  const TensorDict d = load(index(R"({"y":"m-2.safetensors","x":"m-1.safetensors"})"), {"CPU"});
  EXPECT_THAT(d.names(), ElementsAre("y", "x"));
  EXPECT_THAT(d["x"].to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(d["y"].to_vector<float>(), ElementsAre(3));
  const auto error = [&](const std::string& map) {
    return error_text<IoError>([&] { load(index(map), {"CPU"}); });
  };
  EXPECT_THAT(error(R"({"z":"m-1.safetensors"})"), HasSubstr("has no such tensor"));
  EXPECT_THAT(error(R"({"x":"m-3.safetensors"})"), HasSubstr("m-3.safetensors"));
  EXPECT_THAT(error(R"({"x":"../m-1.safetensors"})"), HasSubstr("no plain name"));
  EXPECT_THAT(error(R"({"x":["m-1.safetensors"]})"), HasSubstr("weight_map"));
}

TEST(Npz, SamplesAndDamage) {
  const ScratchFolder folder;
  for (const auto& [deflate, zip64] : {std::pair(false, false), {true, false}, {true, true}}) {
    const TensorDict d = load(folder.write("z", sample_npz(deflate, zip64)), {.device = "CPU"});
    EXPECT_EQ(d.format(), "npz");
    EXPECT_THAT(d.names(), ElementsAre("a", "b", "c/d"));
    EXPECT_EQ(contents(d["a"])[1], 48);
  }
  Bytes damaged = sample_npz(false, false);
  damaged[200] ^= 1;  // within the data of a
  EXPECT_THAT(load_error(folder, damaged), HasSubstr("checksum"));
  EXPECT_THAT(load_error(folder, zip_file({{"notes.txt", {1}}})), HasSubstr("no .npy array"));
  Bytes file = sample_npz(false, false);
  EXPECT_THAT(load_error(folder, BytesBuilder().zeros(3).append(file).bytes), HasSubstr("neither"));
}

TEST(Gguf, ModelsInSeveralFiles) {
  const ScratchFolder folder;
  const auto part = [&](const char* name, uint16_t number, int32_t tensors = 2) {
    const std::string tensor(1, char('a' + number));
    return folder.write(name, gguf_split({{tensor, 24, {1}, Bytes{uint8_t(5 + number)}}}, number, 2,
                                         tensors));
  };
  const auto error = [](const std::string& path) {
    return error_text<IoError>([&] { load(path, {.device = "CPU"}); });
  };
  const std::string first = part("m-00001-of-00002.gguf", 0);
  EXPECT_THAT(error(first), HasSubstr("in 2 files, of which " +
                                      folder.path("m-00002-of-00002.gguf") + " is missing"));
  const std::string second = part("m-00002-of-00002.gguf", 1);
  const TensorDict d = load(first, {.device = "CPU"});
  EXPECT_THAT(d.names(), ElementsAre("a", "b"));
  EXPECT_EQ(d["b"].item(), 6);
  EXPECT_EQ(d.metadata("general.name")->str(), "\"sample\"");
  EXPECT_THAT(error(second), HasSubstr("it is one of 2 files; " + first + " opens them"));
  EXPECT_THAT(error(part("n.gguf", 0)), HasSubstr("ends in -00001-of-00002.gguf"));
  part("m-00002-of-00002.gguf", 0);
  EXPECT_THAT(error(first), HasSubstr("it is not the one of 2 that its name has"));
  part("m-00002-of-00002.gguf", 1), part("m-00001-of-00002.gguf", 0, 3);
  EXPECT_THAT(error(first), HasSubstr("split.tensors.count is 3, but the 2 files have 2 of 2"));
}

TEST(Gguf, MetadataAndTensors) {
  const ScratchFolder folder;
  const TensorDict d = load(folder.write("g", sample_gguf()), {.device = "CPU"});
  EXPECT_EQ(d.metadata("general.name")->str(), "\"sample\"");
  EXPECT_EQ(d.metadata("a.lists")->str(), "[[3, -4]]");
  EXPECT_EQ(d.metadata("a.u64")->str(), "9223372036854775808");
  EXPECT_EQ(d.metadata("a.f64")->str(), "-0.25");
  EXPECT_EQ(d.metadata("a.bool")->str(), "true");
  EXPECT_THAT(d.names(), ElementsAre("w", "q", "k", "s"));
  EXPECT_THAT(d.info()[1].shape, ElementsAre(2, 64));
  EXPECT_EQ(d["q"].dtype(), DType::F32);
  EXPECT_THAT(d["w"].sizes(), ElementsAre(2, 4));
  const auto two = [](uint32_t type, std::vector<uint64_t> extents, size_t bytes) {
    return gguf_file({{"a", type, std::move(extents), Bytes(bytes)}});
  };
  EXPECT_THAT(load_error(folder, two(2, {31}, 18)), HasSubstr("no multiple of 32"));
  EXPECT_THAT(load_error(folder, two(77, {32}, 18)),
              HasSubstr("unknown type 77; known are F32 (0), F16 (1)"));
  EXPECT_THAT(load_error(folder, two(31, {32}, 18)), HasSubstr("removed type 31"));
  EXPECT_THAT(load_error(folder, two(0, {1, 1, 1, 1, 1}, 4)), HasSubstr("5 axes"));
  EXPECT_THAT(load_error(folder, two(0, {1ull << 60, 1ull << 60}, 4)), HasSubstr("2^62"));
  EXPECT_THAT(load_error(folder, two(0, {9}, 32)), HasSubstr("outside of"));
  EXPECT_THAT(load_error(folder, gguf_file({}, 0x03000000)), HasSubstr("big-endian"));
  const TensorDict listed = load(folder.write("l", two(9, {32}, 36)), {.device = "CPU"});
  EXPECT_THAT(error_text<Unsupported>([&] { listed["a"]; }),
              HasSubstr("is of Q8_1, which tuff does not compute with; blocks of Q4_0, Q4_1,"));
}

// Sizes of src/ggml-common.h (github.com/ggml-org/ggml): bytes of a block of 256.
TEST(Gguf, ListsTheTypeThatIsNotDecoded) {
  const ScratchFolder folder;  // Q8_1: of products within kernels, no file has it
  const Bytes file = gguf_file({{"a", 9, {512}, Bytes(16 * 36)}, {"b", 24, {1}, Bytes{5}}});
  const TensorDict d = load(folder.write("g", file), {.device = "CPU"});
  EXPECT_EQ(d.info()[0].type, "Q8_1");
  EXPECT_EQ(d.info()[0].size_bytes, 16u * 36);
  EXPECT_EQ(d.info()[0].dtype, DType::Void);
  EXPECT_EQ(d["b"].to_vector<int8_t>(), std::vector<int8_t>{5});
  EXPECT_THAT(error_text<Unsupported>([&] { d["a"]; }), HasSubstr("Q8_1"));
}

TEST(Gguf, ListsOfMetadataAreBounded) {
  const ScratchFolder folder;
  BytesBuilder file;
  file.text("GGUF").add(3u).add(uint64_t{0}).add(uint64_t{1});
  file.add(uint64_t{1}).text("k").add(9u).add(0u).add(uint64_t{10'000'001}).zeros(10'000'001);
  EXPECT_THAT(load_error(folder, file.bytes), HasSubstr("more than 10000000 values"));
}

TEST(Pytorch, ViewsOfStorages) {
  const ScratchFolder folder;
  const TensorDict d = load(folder.write("p", sample_pytorch()), {.device = "CPU"});
  EXPECT_THAT(d.names(), ElementsAre("model.w", "model.t", "model.p"));
  EXPECT_EQ(d.metadata("step")->str(), "7");
  EXPECT_EQ(d.metadata("lr")->str(), "0.5");
  EXPECT_EQ(d.metadata("list.2")->str(), "true");
  const Bytes w = contents(d["model.w"]), t = contents(d["model.t"]);
  EXPECT_EQ(contents(d["model.p"]), w);
  EXPECT_TRUE(std::equal(w.begin(), w.begin() + 4, t.begin() + 8));  // element 1 of the storage
}

Bytes one_tensor(const std::vector<int>& shape, const std::vector<int>& strides, int offset = 0) {
  return pytorch_file(BytesBuilder()
                          .text("\x80\x02")
                          .append(pickled_tensor("0", 6, offset, shape, strides))
                          .text(".")
                          .bytes,
                      {BytesBuilder().add(0.f).add(1.f).add(2.f).add(3.f).add(4.f).add(5.f).bytes});
}

TEST(Pytorch, StridesOfEveryKind) {
  const ScratchFolder folder;
  const auto values = [&](const std::vector<int>& shape, const std::vector<int>& strides,
                          int offset) {
    const TensorDict d = load(folder.write("t.pt", one_tensor(shape, strides, offset)), {"CPU"});
    return d["t"].to_vector<float>();
  };
  EXPECT_THAT(values({2, 3}, {3, 1}, 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values({3, 2}, {1, 3}, 0), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Pytorch, StridesWithGapsRepeatsAndOverlaps) {
  const ScratchFolder folder;
  const auto values = [&](const std::vector<int>& shape, const std::vector<int>& strides,
                          int offset) {
    const TensorDict d = load(folder.write("t.pt", one_tensor(shape, strides, offset)), {"CPU"});
    return d["t"].to_vector<float>();
  };
  EXPECT_THAT(values({2, 2}, {3, 2}, 0), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(values({3}, {2}, 1), ElementsAre(1, 3, 5));
  EXPECT_THAT(values({2, 2, 1}, {0, 4, 9}, 1), ElementsAre(1, 5, 1, 5));
  EXPECT_THAT(values({}, {}, 4), ElementsAre(4));
  EXPECT_TRUE(values({0, 3}, {7, 7}, 0).empty());
  EXPECT_THAT(load_error(folder, one_tensor({3, 3}, {1, 1})), HasSubstr("overlapping"));
  EXPECT_THAT(load_error(folder, one_tensor({3, 3}, {3, 1})), HasSubstr("reaches beyond"));
  EXPECT_THAT(load_error(folder, one_tensor({1 << 30, 1 << 30, 2}, {0, 0, 1})),
              HasSubstr("2305843009213693952 elements of 4 bytes are more than 2^63 bytes"));
  EXPECT_THAT(load_error(folder, one_tensor({2}, {1}, 5)), HasSubstr("takes 2 elements from 5"));
}

// Of types that came after typed storages: bytes, and a dtype beside the strides.
TEST(Pytorch, TensorsOfBytesNameTheirType) {
  const ScratchFolder folder;
  const auto file = [](const Bytes& tensor) {
    return pytorch_file(BytesBuilder().text("\x80\x02").append(tensor).text(".").bytes,
                        {{0x38, 0x40, 0xb8, 0x00, 0x44, 0x7e}});
  };
  const auto values = [&](const std::string& dtype) {
    const TensorDict d =
        load(folder.write("t.pt", file(pickled_bytes("0", 6, {3, 2}, {1, 3}, dtype))), {"CPU"});
    return d["t"].cast(DType::F32).to_vector<float>();
  };
  EXPECT_THAT(values("float8_e4m3fn"), ElementsAre(1, 0, 2, 3, -1, 448));
  EXPECT_EQ(values("float8_e5m2")[0], 0.5f);
  const auto error = [&](const Bytes& tensor) { return load_error(folder, file(tensor)); };
  const TensorDict u = load(
      folder.write("u.pt", file(pickled_bytes("0", 6, {3}, {1}, "uint16"))), {"CPU"});
  EXPECT_EQ(u["u"].to_vector<uint16_t>(), (std::vector<uint16_t>{0x4038, 0x00b8, 0x7e44}));
  EXPECT_THAT(error(pickled_bytes("0", 6, {1}, {1}, "uint32")),
              HasSubstr("6 bytes are no whole number of torch.uint32"));
  EXPECT_THAT(error(pickled_bytes("0", 6, {4}, {1}, "uint16")), HasSubstr("reaches beyond"));
  EXPECT_THAT(error(pickled_bytes("0", 6, {3}, {1}, "FloatStorage")), HasSubstr("without a dtype"));
  EXPECT_THAT(error(pickled_bytes("0", 6, {3}, {1}, "uint16", "torch\nByteStorage")),
              HasSubstr("of torch.ByteStorage, not of bytes"));
  EXPECT_THAT(error(pickled_bytes("0", 6, {3}, {1}, "uint16", "torch\nuint16")),
              HasSubstr("a storage without type"));
}

TEST(Pytorch, RefusesWhatIsNoTensor) {
  const ScratchFolder folder;
  const auto error = [&](const std::string& pickle) {
    return load_error(folder, pytorch_file(BytesBuilder().text(pickle).bytes, {Bytes(24)}));
  };
  EXPECT_THAT(error("\x80\x02"
                    "cos\nsystem\n(X\x02\x00\x00\x00lstR."),
              HasSubstr("'os.system' is refused"));
  EXPECT_THAT(error("\x80\x02"
                    "cbuiltins\neval\n."),
              HasSubstr("'builtins.eval' is refused"));
  EXPECT_THAT(error("\x80\x02"
                    "R."),
              HasSubstr("the stack is empty"));
  EXPECT_THAT(error("\x80\x02]q\x01h\x01"
                    "a."),
              HasSubstr("contains itself"));
  EXPECT_THAT(error("\x80\x02h\x07."), HasSubstr("remembered as 7"));
  EXPECT_THAT(error("\x80\x09."), HasSubstr("protocol 9"));
  // Lists of the list before, ten times each: 10^9 items of 90 bytes.
  std::string bomb =
      "\x80\x02"
      "K\x01";
  for (char level = 0; level < 9; level++) {
    bomb += std::string("q") + level + "](";
    for (int i = 0; i < 10; i++) bomb += std::string("h") + level;
    bomb += "e";
  }
  EXPECT_THAT(error(bomb + "."), HasSubstr("more than 1000000 items"));
  EXPECT_THAT(load_error(folder, BytesBuilder().text("\x80\x02}q\x01.").bytes),
              HasSubstr("before 1.6"));
  EXPECT_THAT(error("\x80\x02}K\x01\x85K\x02s."), HasSubstr("a key of the outermost dictionary"));
}

TEST(Pytorch, AValueAloneHasTheFilesName) {
  const ScratchFolder folder;
  const Bytes file = pytorch_file(BytesBuilder().text("\x80\x02K\x05.").bytes, {});
  const TensorDict d = load(folder.write("epoch.pt", file));
  ASSERT_NE(d.metadata("epoch"), nullptr);
  EXPECT_EQ(d.metadata("epoch")->str(), "5");
}

TEST(Idx, Sample) {
  const ScratchFolder folder;
  const Tensor t = load(folder.write("i.idx", sample_idx()), {.device = "CPU"})["i"];
  EXPECT_THAT(t.sizes(), ElementsAre(2, 3));
  EXPECT_EQ(t.to_vector<int16_t>()[0], 11 << 8 | 48);
}

TEST(Files, Errors) {
  const ScratchFolder folder;
  EXPECT_THAT(load_error(folder, {}), HasSubstr("empty"));
  EXPECT_THAT(load_error(folder, Bytes(100, 7)), HasSubstr("neither safetensors"));
  EXPECT_THAT(error_text<IoError>([&] { load(folder.path("absent")); }), HasSubstr("absent"));
  EXPECT_THAT(error_text<IoError>([&] { load(folder.path()); }), HasSubstr("no regular file"));
  TensorDict d;
  d.set("a", Tensor::from({1}, {1}, {.device = "CPU"}));
  EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("a.pt"), d); }),
              HasSubstr(".npz"));
  EXPECT_THAT(error_text<InvalidArgument>([&] { d.at("b"); }), HasSubstr("'b'"));
  EXPECT_THAT(error_text<IoError>([&] { save(folder.path("no/a.npy"), d); }),
              HasSubstr("no/a.npy"));
  d.set("b", Tensor::from({1}, {1}, {.device = "CPU"}).cast(DType::BF16));
  EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("a.npy"), d); }),
              HasSubstr("one tensor"));
  EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("a.npz"), d); }),
              HasSubstr("bfloat16"));
  EXPECT_THAT(os::list_directory(folder.path()), ElementsAre("x"));  // nothing is left behind
}

TEST(Files, NamesThatAFormatDoesNotHold) {
  const ScratchFolder folder;
  for (const std::string& name : {std::string("a\xff"), std::string("\xed\xa0\x80"),
                                  std::string("\xc0\xaf"), std::string("a\0b", 3)}) {
    TensorDict d;
    d.set(name, Tensor::from({1}, {1}, {.device = "CPU"}));
    EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("a.npz"), d); }),
                HasSubstr("rename it"));
    const auto safetensors = [&] { save(folder.path("a.safetensors"), d); };
    if (name.size() == 3 && name[1] == 0)
      safetensors();
    else
      EXPECT_THAT(error_text<InvalidArgument>(safetensors), HasSubstr("rename it"));
  }
  TensorDict d;
  d.set_metadata("\xff", {true});
  EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("b.safetensors"), d); }),
              HasSubstr("'\\xff' is no UTF-8"));
  EXPECT_THAT(error_text<InvalidArgument>([&] { save(folder.path("b.npy"), d, {true}); }),
              HasSubstr(".npz"));
}

TEST(Files, MetadataIsWrittenWhole) {
  const ScratchFolder folder;
  TensorDict d;
  MetadataValue list, quoted;
  quoted.value = std::string("a\"");
  MetadataValue::List items(12, MetadataValue{uint64_t{7}});
  items.push_back(quoted);
  list.value = items;
  d.set_metadata("list", list);
  quoted.value = std::string("no UTF-8: \xff");
  d.set_metadata("text", quoted);
  for (int i = 0; i < 50'000; i++) d.set_metadata(std::to_string(i), {int64_t(-i)});
  save(folder.path("a.safetensors"), d);
  const TensorDict read = load(folder.path("a.safetensors"));
  EXPECT_EQ(read.metadata().size(), 50'002u);
  EXPECT_EQ(std::get<std::string>(read.metadata("list")->value),
            "[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, \"a\\\"\"]");
  EXPECT_EQ(read.metadata("text")->str(), "\"no UTF-8: \xef\xbf\xbd\"");
  EXPECT_EQ(read.metadata("49999")->str(), "\"-49999\"");
}

TEST(Files, DictionariesOfMemory) {
  TensorDict d;
  d.set("a", Tensor::from({1}, {1}, {.device = "CPU"}));
  d.set("b", Tensor::from({2}, {1}, {.device = "CPU"}));
  d.set("a", Tensor::from({3}, {1}, {.device = "CPU"}));
  EXPECT_THAT(d.names(), ElementsAre("a", "b"));
  EXPECT_EQ(d["a"].item(), 3);
  d.erase("a");
  EXPECT_FALSE(d.contains("a"));
  EXPECT_EQ(d["b"].item(), 2);
}

}  // namespace
}  // namespace tuff::io
