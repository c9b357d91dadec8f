// The block types of GGUF as tensor expressions: bytes -> bit operations -> float32, on the device,
// fused into what consumes them. Called by tensor_bytes. The layouts are ggml's (github.com/
// ggml-org/ggml, src/ggml-common.h; MXFP4: OCP Microscaling Formats 1.0, section 5.3).
#pragma once

#include <string>
#include <string_view>

#include <tuff/io.h>

namespace tuff::io {

// What a file's tensor of such a type is decoded from: U8 (n, bytes of a block). Undefined for
// other tensors.
Tensor packed_blocks(const TensorDict& tensors, std::string_view name);

bool can_dequantize(std::string_view type);
std::string decoded_types();  // their names, for messages
// blocks: U8 (n, bytes of a block) -> F32 (n, elements of a block).
Tensor dequantize(std::string_view type, const Tensor& blocks);

}  // namespace tuff::io
