// GGUF, versions 2 and 3, little-endian (github.com/ggml-org/ggml, docs/gguf.md): metadata, then
// tensors aligned in one block of data. Called by tensor_file; a pure function of the bytes.
#pragma once

#include "io/formats/index.h"

namespace tuff::io {

bool is_gguf(const ByteSource& source);
FileIndex read_gguf(const ByteSource& source);

}  // namespace tuff::io
