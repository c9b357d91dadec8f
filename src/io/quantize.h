// The encoders of GGUF's element types: floats -> blocks, on the host. Called by language/tensor_writer.
// Layouts: dequantize.h. Must never know files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tuff::io {

bool can_quantize(std::string_view type);
std::string encoded_types();  // their names, for messages
// Whole blocks of finite values, of at most kLargestQuantized in magnitude where blocks have
// scales; `blocks` are as many bytes as they take.
inline constexpr float kLargestQuantized = 65504;  // scales are halves
void quantize(std::string_view type, std::span<const float> values, std::span<uint8_t> blocks);

}  // namespace tuff::io
