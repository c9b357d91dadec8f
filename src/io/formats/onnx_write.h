// The writer of ONNX files: what onnx.h reads, in the same wire format. Called by onnx::save(). A
// pure function of the model, the same bytes for equal models; needs no more than base.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "io/formats/onnx_model.h"

namespace tuff::io {

// A file in pieces: bytes, or the contents of an initializer of the graph, by its number.
using OnnxPiece = std::variant<std::string, size_t>;

// Initializers of the graph have their contents in memory, in another file (`range` with a
// location), or, where `is_elsewhere` is true of their number, in a piece of their own as raw_data
// holds them. Values of the graph, sparse initializers and functions are not written.
std::vector<OnnxPiece> encode_onnx(const onnx::Model& model,
                                   const std::function<bool(size_t)>& is_elsewhere);

// More bytes than parsers of protocol buffers take in one message.
inline constexpr uint64_t kMostOnnxBytes = uint64_t(1) << 31;

}  // namespace tuff::io
