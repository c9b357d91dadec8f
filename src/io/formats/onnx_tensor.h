// A TensorProto of an ONNX file: the one message whose parts have to agree in number. Called by the
// reader of the others.
#pragma once

#include "io/formats/onnx_model.h"
#include "io/formats/protobuf.h"

namespace tuff::io {

onnx::TensorData read_tensor_field(ProtobufReader& r);  // the value of the field that r is at
onnx::TensorData read_tensor_file(ProtobufReader& r);   // all that r reads

}  // namespace tuff::io
