// What was read of an ONNX file as text: every field of the model, in the order of its messages.
// Called by the golden test, by the fuzz target and by the test of damaged files, which touch all
// that was read by it.
#pragma once

#include <string>

#include "io/formats/bytes.h"
#include "io/formats/onnx_model.h"

namespace tuff::io {

// Contents of the model's own file are hexadecimal.
std::string text_of(const ByteSource& source, const onnx::TensorData& t);
std::string text_of(const ByteSource& source, const onnx::Model& model);

}  // namespace tuff::io
