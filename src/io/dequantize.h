// The block types of GGUF as tensor expressions: bytes -> bit operations -> float32, on the device,
// fused into what consumes them. Called by tensor_bytes. The layouts are ggml's (github.com/
// ggml-org/ggml, src/ggml-common.h; MXFP4: OCP Microscaling Formats 1.0, section 5.3).
#pragma once

#include <string>
#include <string_view>

#include <tuff/tensor.h>

namespace tuff::io {

bool can_dequantize(std::string_view type);
std::string decoded_types();  // their names, for messages
// blocks: U8 (n, bytes of a block) -> F32 (n, elements of a block).
Tensor dequantize(std::string_view type, const Tensor& blocks);

}  // namespace tuff::io
