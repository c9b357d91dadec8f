// What `tuff inspect` says of an ONNX model, nothing of which is run. Called by the command.
#pragma once

#include <string>

namespace tuff::cli {

bool is_onnx_file(const std::string& path);  // IoError where it cannot be read
void inspect_onnx(const std::string& path, bool json);

}  // namespace tuff::cli
