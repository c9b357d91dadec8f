// Inputs of an ONNX model as the command line names them: NAME=FILE, NAME=SHAPE for made-up
// numbers, NAME=NUMBER for a scalar. Called by the commands that run models.
#pragma once

#include <string>
#include <vector>

#include <tuff/onnx.h>
#include "cli/command.h"

namespace tuff::cli {

void add_onnx_inputs_option(CLI::App& c, std::vector<std::string>& inputs);
// One for each input of the model, on its device. UsageError for one that is missing, unknown,
// given twice, or neither a file nor a shape; IoError for what cannot be read.
onnx::Values read_onnx_inputs(const std::vector<std::string>& given, const onnx::Model& model);

}  // namespace tuff::cli
