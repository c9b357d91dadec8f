// safetensors (huggingface.co/docs/safetensors, "Format"): 8 bytes of header length, a JSON header,
// then the tensors without holes. Called by tensor_file; a pure function of the bytes.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, the format's own limit

bool is_safetensors(const ByteSource& source);
FileIndex read_safetensors(const ByteSource& source);

// The file up to the contents; fills in the offsets of `tensors`, whose dtype, shape and name are
// used. Those of wide elements come first in the data, so that each is aligned. InvalidArgument for
// what the format does not hold.
std::vector<uint8_t> encode_safetensors_header(std::vector<TensorEntry>& tensors,
                                               const Metadata& metadata);
// Which tensors to write one after the other: indices by offset.
std::vector<size_t> by_offset(const std::vector<TensorEntry>& tensors);

// model.safetensors.index.json: which file beside it each tensor stands in.
struct ShardIndex {
  std::vector<std::string> files;                         // plain names, each once
  std::vector<std::pair<std::string, uint32_t>> tensors;  // name, index into files
};
ShardIndex read_shard_index(const ByteSource& source);

}  // namespace tuff::io
