// GGUF, versions 2 and 3, little-endian (github.com/ggml-org/ggml, docs/gguf.md): metadata, then
// tensors aligned in one block of data. Called by tensor_file; a pure function of the bytes.
#pragma once

#include <string_view>

#include "io/formats/index.h"

namespace tuff::io {

bool is_gguf(const ByteSource& source);
FileIndex read_gguf(const ByteSource& source);
const BlockType* gguf_block(std::string_view name);  // null: there is none of this name

}  // namespace tuff::io
