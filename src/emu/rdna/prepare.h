// Turns code into Steps: decoded once, with the functions that execute and the registers touched.
// Called by dispatch.cpp.
#pragma once

#include <span>

#include "emu/rdna/machine.h"

namespace tuff::emu::rdna {

void prepare(Machine& machine, std::span<const uint8_t> code);

}  // namespace tuff::emu::rdna
