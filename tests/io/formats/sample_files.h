// Small files of every format, made byte by byte: seeds of the fuzz targets, and what the tests
// read and damage. Needs no room but base and the readers.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "io/formats/index.h"

namespace tuff::io {

using Bytes = std::vector<uint8_t>;

// Little-endian numbers and texts one after the other.
class BytesBuilder {
 public:
  template <class T>
  BytesBuilder& add(T value) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof(T));
    return *this;
  }
  BytesBuilder& text(std::string_view t) {
    bytes.insert(bytes.end(), t.begin(), t.end());
    return *this;
  }
  BytesBuilder& sized_text(std::string_view t) { return add(uint64_t(t.size())).text(t); }
  BytesBuilder& zeros(size_t count) {
    bytes.resize(bytes.size() + count);
    return *this;
  }
  BytesBuilder& append(const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  BytesBuilder& align(size_t to) { return zeros((to - bytes.size() % to) % to); }
  Bytes bytes;
};

Bytes safetensors_file(const std::string& header, size_t data_bytes);
Bytes sample_safetensors();
Bytes sample_npy();
Bytes npy_file(const std::string& header, const Bytes& data, int version = 1);
Bytes sample_npz(bool deflate, bool zip64);
struct GgufTensor {
  std::string name;
  uint32_t type;
  std::vector<uint64_t> extents;  // the innermost first, as the file has them
  Bytes data;
};
Bytes gguf_file(const std::vector<GgufTensor>& tensors, uint32_t version = 3);
// One of `count` files of a model of `tensors` tensors.
Bytes gguf_split(const std::vector<GgufTensor>& own, uint16_t number, uint16_t count,
                 int32_t tensors);
Bytes sample_gguf();
// A checkpoint: the pickle, and storages "0", "1" ...
Bytes pytorch_file(const Bytes& pickle, const std::vector<Bytes>& storages);
// The opcodes that push torch.FloatStorage KEY as a tensor.
Bytes pickled_tensor(const std::string& key, int elements, int offset,
                     const std::vector<int>& shape, const std::vector<int>& strides,
                     const std::string& storage = "FloatStorage");
// The same of so many bytes, with a dtype of its own: torch.DTYPE.
Bytes pickled_bytes(const std::string& key, int bytes, const std::vector<int>& shape,
                    const std::vector<int>& strides, const std::string& dtype,
                    const std::string& storage = "torch.storage\nUntypedStorage");
Bytes sample_pytorch();
Bytes sample_idx();
Bytes zip_file(const std::vector<std::pair<std::string, Bytes>>& members, bool deflate = false,
               bool zip64 = false);

// A part of at most `longest` - 1 bytes taken out, or put in once more somewhere else.
Bytes with_part_moved(Bytes bytes, bool taken_out, size_t longest, std::mt19937& random);

struct SampleFile {
  const char* format;
  Bytes bytes;
};
// What a failed test of one is called.
inline void PrintTo(const SampleFile& file, std::ostream* out) { *out << file.format; }
std::vector<SampleFile> sample_files();

}  // namespace tuff::io
