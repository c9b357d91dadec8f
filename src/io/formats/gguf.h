// GGUF, versions 2 and 3, little-endian (github.com/ggml-org/ggml, docs/gguf.md): metadata, then
// tensors aligned in one block of data. Called by tensor_file; a pure function of the bytes.
#pragma once

#include <string_view>

#include "io/formats/index.h"

namespace tuff::io {

bool is_gguf(const ByteSource& source);
FileIndex read_gguf(const ByteSource& source);

// Where an item of metadata stands, for those who copy it: the bytes of its type and value.
struct GgufItem {
  std::string key;
  uint64_t offset = 0, size_bytes = 0;
};
std::vector<GgufItem> gguf_items(const ByteSource& source);

uint32_t gguf_type_id(std::string_view name);           // of one that gguf_block() knows
const BlockType* gguf_block(std::string_view name);  // null: there is none of this name

}  // namespace tuff::io
