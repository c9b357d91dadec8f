// Beam search: the fastest schedule of a kernel by measuring candidates on the device itself, where
// TUFF_BEAM asks for it. Starts from what the heuristics chose, so that it is never slower than
// that; results are kept on disk by kernel, Target and driver. Called by ProgramCache. Knows
// nothing of graphs or tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"
#include "hcq/device.h"
#include "kernel/opt/neighbours.h"
#include "render/renderer.h"

namespace tuff::engine {

struct BeamOptions {
  uint32_t width = 0;        // schedules that are followed at once; 0: no search
  double seconds = 10;       // about how long a kernel is searched
  uint32_t candidates = 64;  // compiled together, so that a compiler's start is shared
  double gain = 0.01;        // a level that gains less ends the search
  static BeamOptions of_environment();
};

struct BeamResult {
  kernel::Opts opts;
  double ns = 0, heuristic_ns = 0;  // of one launch; infinite: the heuristics' kernel is wrong
  uint32_t candidates = 0;          // measured
  double seconds = 0;
};

using CompileSources =
    std::function<std::vector<render::Binary>(std::span<const render::Source> sources)>;

// Nothing for what cannot be searched: symbolic kernels, and where the heuristics' kernel itself
// does not run. Candidates whose results differ from the plain kernel's are never chosen: the one
// without any opts, on a GPU the one with an invocation for each output.
std::optional<BeamResult> beam_search(const ir::UOp& ast, hcq::Device& device,
                                      const BeamOptions& options, const CompileSources& compile);

}  // namespace tuff::engine
