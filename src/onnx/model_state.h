// What copies of a Model share. Called by model.cpp and by sessions.
#pragma once

#include <tuff/onnx.h>
#include "onnx/importer.h"

namespace tuff::onnx {

struct Model::State {
  State(io::onnx::Model model, std::unique_ptr<io::ByteSource> source, const std::string& folder,
        const LoadOptions& options);
  Description description;
  Importer importer;
};

}  // namespace tuff::onnx
