#include "io/formats/sample_files.h"

#include <algorithm>

#include "io/formats/npy.h"
#include "io/formats/safetensors.h"
#include "io/formats/zip.h"

namespace tuff::io {
namespace {

Bytes counted(size_t n) {
  Bytes out(n);
  for (size_t i = 0; i < n; i++) out[i] = uint8_t(i * 37 + 11);
  return out;
}

Bytes npy_array(DType dtype, const std::vector<int64_t>& shape, size_t count) {
  return BytesBuilder().append(encode_npy_header(dtype, shape)).append(counted(count)).bytes;
}

void gguf_metadata(BytesBuilder& b) {
  b.sized_text("general.name").add(8u).sized_text("sample");
  b.sized_text("a.u8").add(0u).add(uint8_t(200));
  b.sized_text("a.i8").add(1u).add(int8_t(-100));
  b.sized_text("a.u16").add(2u).add(uint16_t(60000));
  b.sized_text("a.i16").add(3u).add(int16_t(-30000));
  b.sized_text("a.u32").add(4u).add(uint32_t(4000000000));
  b.sized_text("a.i32").add(5u).add(int32_t(-2000000000));
  b.sized_text("a.f32").add(6u).add(1.5f);
  b.sized_text("a.bool").add(7u).add(uint8_t(1));
  b.sized_text("a.list").add(9u).add(8u).add(uint64_t(2)).sized_text("x").sized_text("yz");
  b.sized_text("a.lists").add(9u).add(9u).add(uint64_t(1)).add(5u).add(uint64_t(2)).add(3).add(-4);
  b.sized_text("a.u64").add(10u).add(uint64_t(1) << 63);
  b.sized_text("a.i64").add(11u).add(int64_t(-1));
  b.sized_text("a.f64").add(12u).add(-0.25);
}
constexpr uint64_t kMetadataItems = 14;

}  // namespace

Bytes safetensors_file(const std::string& header, size_t data_bytes) {
  return BytesBuilder().sized_text(header).append(counted(data_bytes)).bytes;
}

Bytes sample_safetensors() {
  return safetensors_file(R"({"__metadata__":{"format":"pt","note":"a \u00e9"},)"
                          R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                          R"("b":{"dtype":"I16","shape":[3],"data_offsets":[24,30]},)"
                          R"("none":{"dtype":"U8","shape":[0,7],"data_offsets":[30,30]},)"
                          R"("one":{"dtype":"BF16","shape":[],"data_offsets":[30,32]}}   )",
                          32);
}

Bytes npy_file(const std::string& header, const Bytes& data, int version) {
  BytesBuilder b;
  b.text("\x93NUMPY").add(uint8_t(version)).add(uint8_t(0));
  if (version == 1)
    b.add(uint16_t(header.size()));
  else
    b.add(uint32_t(header.size()));
  return b.text(header).append(data).bytes;
}

Bytes sample_npy() { return npy_array(DType::F32, {3, 5}, 60); }

class BytesOutput : public ZipWriter::Output {
 public:
  void put(std::span<const uint8_t> piece) override {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  void replace(uint64_t offset, std::span<const uint8_t> piece) override {
    std::ranges::copy(piece, bytes.begin() + ptrdiff_t(offset));
  }
  Bytes bytes;
};

Bytes zip_file(const std::vector<std::pair<std::string, Bytes>>& members, bool deflate,
               bool zip64) {
  BytesOutput out;
  ZipWriter zip(out, zip64);
  for (const auto& [name, bytes] : members)
    zip.add(name, bytes.size(), [&](const ByteSink& sink) { sink(bytes); }, deflate);
  zip.finish();
  return out.bytes;
}

Bytes sample_npz(bool deflate, bool zip64) {
  return zip_file({{"a.npy", npy_array(DType::F32, {3, 5}, 60)},
                   {"b.npy", npy_array(DType::I64, {}, 8)},
                   {"c/d.npy", npy_array(DType::U8, {0, 4}, 0)}},
                  deflate, zip64);
}

namespace {

Bytes gguf_file(const std::vector<GgufTensor>& tensors, uint32_t version, uint64_t items,
                const BytesBuilder& metadata) {
  BytesBuilder b;
  b.text("GGUF").add(version).add(uint64_t(tensors.size())).add(items).append(metadata.bytes);
  uint64_t at = 0;
  for (const GgufTensor& t : tensors) {
    b.sized_text(t.name).add(uint32_t(t.extents.size()));
    for (const uint64_t e : t.extents) b.add(e);
    b.add(t.type).add(at);
    at += (t.data.size() + 31) / 32 * 32;
  }
  for (const GgufTensor& t : tensors) b.align(32).append(t.data);
  return b.bytes;
}

}  // namespace

Bytes gguf_file(const std::vector<GgufTensor>& tensors, uint32_t version) {
  BytesBuilder metadata;
  gguf_metadata(metadata);
  return gguf_file(tensors, version, kMetadataItems, metadata);
}

Bytes gguf_split(const std::vector<GgufTensor>& own, uint16_t number, uint16_t count,
                 int32_t tensors) {
  BytesBuilder metadata;
  if (number == 0) gguf_metadata(metadata);
  metadata.sized_text("split.no").add(2u).add(number);
  metadata.sized_text("split.count").add(2u).add(count);
  metadata.sized_text("split.tensors.count").add(5u).add(tensors);
  return gguf_file(own, 3, 3 + (number == 0 ? kMetadataItems : 0), metadata);
}

Bytes sample_gguf() {
  return gguf_file({{"w", 0, {4, 2}, counted(32)},
                    {"q", 2, {64, 2}, counted(72)},
                    {"k", 12, {256}, counted(144)},
                    {"s", 24, {}, counted(1)}});
}

namespace {

// `call` is what rebuilds it, `storage` a module and a class, `more` further arguments.
Bytes rebuilt(const std::string& call, const std::string& storage, const std::string& key,
              int elements, int offset, const std::vector<int>& shape,
              const std::vector<int>& strides, const std::string& more) {
  const auto text = [](BytesBuilder& b, const std::string& t) {
    b.text("X").add(uint32_t(t.size())).text(t);
  };
  const auto number = [](BytesBuilder& b, int n) { b.text("J").add(int32_t(n)); };
  BytesBuilder b;
  b.text("ctorch._utils\n" + call + "\n((");
  text(b, "storage");
  b.text("c" + storage + "\n");
  text(b, key);
  text(b, "cpu");
  number(b, elements);
  b.text("tQ");
  number(b, offset);
  for (const auto* list : {&shape, &strides}) {
    b.text("(");
    for (const int n : *list) number(b, n);
    b.text("t");
  }
  b.text(
      "\x89"
      "ccollections\nOrderedDict\n)R" +
      more + "tR");
  return b.bytes;
}

}  // namespace

Bytes pickled_tensor(const std::string& key, int elements, int offset,
                     const std::vector<int>& shape, const std::vector<int>& strides,
                     const std::string& storage) {
  return rebuilt("_rebuild_tensor_v2", "torch\n" + storage, key, elements, offset, shape, strides,
                 "");
}
Bytes pickled_bytes(const std::string& key, int bytes, const std::vector<int>& shape,
                    const std::vector<int>& strides, const std::string& dtype,
                    const std::string& storage) {
  return rebuilt("_rebuild_tensor_v3", storage, key, bytes, 0, shape, strides,
                 "ctorch\n" + dtype + "\n");
}

Bytes pytorch_file(const Bytes& pickle, const std::vector<Bytes>& storages) {
  std::vector<std::pair<std::string, Bytes>> members{{"archive/data.pkl", pickle}};
  for (size_t i = 0; i < storages.size(); i++)
    members.push_back({"archive/data/" + std::to_string(i), storages[i]});
  members.push_back({"archive/version", {'3', '\n'}});
  return zip_file(members);
}

Bytes sample_pytorch() {
  BytesBuilder b;
  b.text("\x80\x02}q").add(uint8_t(0)).text("(X").add(5u).text("model}(");
  b.text("X").add(1u).text("w").append(pickled_tensor("0", 8, 1, {2, 3}, {3, 1})).text("q\x01");
  b.text("X").add(1u).text("t").append(pickled_tensor("0", 8, 0, {2, 2}, {1, 2}));
  b.text("X").add(1u).text("p").text("ctorch._utils\n_rebuild_parameter\n(").text("h\x01");
  b.text(
      "\x88"
      "ccollections\nOrderedDict\n)RtR");
  b.text("u").text("X").add(4u).text("step").text("K\x07");
  b.text("X").add(2u).text("lr").text("G").text(std::string_view("\x3f\xe0\0\0\0\0\0\0", 8));
  b.text("X").add(4u).text("list").text("](K\x01M\x02\x01\x88Ne").text("u.");
  return pytorch_file(b.bytes, {counted(32)});
}

Bytes sample_idx() {
  return BytesBuilder()
      .text(std::string_view("\0\0\x0b\x02\0\0\0\x02\0\0\0\x03", 12))
      .append(counted(12))
      .bytes;
}

std::vector<SampleFile> sample_files() {
  return {{"safetensors", sample_safetensors()},
          {"npy", sample_npy()},
          {"npz", sample_npz(false, false)},
          {"npz", sample_npz(true, false)},
          {"npz", sample_npz(true, true)},
          {"pytorch", sample_pytorch()},
          {"gguf", sample_gguf()},
          {"idx", sample_idx()}};
}

Bytes with_part_moved(Bytes bytes, bool taken_out, size_t longest, std::mt19937& random) {
  const size_t at = random() % bytes.size(), length = random() % longest;
  const auto begin = bytes.begin() + ptrdiff_t(at),
             end = begin + ptrdiff_t(std::min(length, bytes.size() - at));
  if (taken_out) {
    bytes.erase(begin, end);
    return bytes;
  }
  const Bytes part(begin, end);
  bytes.insert(bytes.begin() + ptrdiff_t(random() % bytes.size()), part.begin(), part.end());
  return bytes;
}

}  // namespace tuff::io
