// The reader of ONNX files: the wire format of protocol buffers (protobuf.dev/programming-guides/
// encoding), eleven messages of onnx.proto, unknown fields skipped. Called by the importer and
// `tuff inspect`; a pure function of the bytes.
#pragma once

#include "io/formats/bytes.h"
#include "io/formats/onnx_model.h"

namespace tuff::io {

// Whether the first bytes read as a ModelProto: nothing else marks one.
bool is_onnx(const ByteSource& source);
// Contents of raw_data and external data stay where they are, as ranges. IoError naming the byte
// and the reason for what is truncated, contradicts itself (a length beyond its message, an extent
// below 0, more elements than bytes) or nests deeper than any model.
onnx::Model read_onnx(const ByteSource& source);

// A TensorProto by itself, as the test data of models comes.
onnx::TensorData read_onnx_tensor(const ByteSource& source);

}  // namespace tuff::io
