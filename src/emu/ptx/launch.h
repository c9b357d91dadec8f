// What emu/api.h offers of PTX. Called by plugin.cpp and run/run_ptx.cpp.
#pragma once

#include <memory>

#include "emu/api.h"

namespace tuff::emu::ptx {

std::unique_ptr<emu_api::PtxModule> load(const std::string& text);
emu_api::PtxLaunchResult launch(const emu_api::PtxLaunchRequest& request);

}  // namespace tuff::emu::ptx
