// The header of a GGUF file, version 3 (github.com/ggml-org/ggml, docs/gguf.md). Called by
// language/write_gguf; a pure function. Contents follow it, each tensor's at a multiple of the
// alignment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/formats/index.h"

namespace tuff::io {

inline constexpr uint64_t kGgufAlignment = 32;  // where general.alignment says no other

// An item of metadata: the bytes of its type and value, as a file has them.
struct GgufField {
  std::string key;
  std::vector<uint8_t> bytes;
};
GgufField gguf_field(std::string key, uint32_t value);

uint64_t aligned(uint64_t bytes, uint64_t alignment);
// Of each tensor name, type, shape and size are taken; places follow from the order.
std::vector<uint8_t> encode_gguf_header(std::span<const GgufField> fields,
                                        std::span<const TensorEntry> tensors, uint64_t alignment);

}  // namespace tuff::io
