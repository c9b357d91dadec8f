// `tuff gpu --spirv`: options that say what a compute shader is given, and its run. Called by
// gpu_command.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "gpu/shader_run.h"

namespace tuff::cli {

struct ShaderOptions {
  std::string file, entry, push;
  std::vector<uint32_t> groups = {1, 1, 1};
  std::vector<std::string> buffers, arguments, constants, results;
};

void add_shader_options(CLI::App& gpu, ShaderOptions& o);
// Runs it, and writes the buffers that --out names. UsageError for what cannot be read.
gpu::ShaderReport run_shader(const ShaderOptions& o, const gpu::EmulationOptions& emulation);

}  // namespace tuff::cli
