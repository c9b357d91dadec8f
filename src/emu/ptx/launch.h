// What emu/api.h offers of PTX. Called by plugin.cpp and run/run_ptx.cpp.
#pragma once

#include <memory>

#include "emu/api.h"
#include "emu/ptx/dispatch.h"

namespace tuff::emu::ptx {

// What sm_90 gives a block at most (CUDA C++ Programming Guide, 16.2).
inline constexpr uint32_t kMostSharedBytes = 227 << 10;

std::unique_ptr<emu_api::PtxModule> load(const std::string& text);
Outcome execute(const emu_api::PtxLaunchRequest& request);
// In memory that has more than the request's regions.
Outcome execute(const emu_api::PtxLaunchRequest& request, RangeMemory& memory);
// What run() takes for it, its regions mapped.
Launch prepare(const emu_api::PtxLaunchRequest& request, RangeMemory& memory);
// The same, as programs that open the library get it.
emu_api::PtxLaunchResult launch(const emu_api::PtxLaunchRequest& request);

}  // namespace tuff::emu::ptx
