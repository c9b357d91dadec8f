// One instruction of one wave, with what is checked around it: words without a meaning, results on
// their way, values that were never written. Called by dispatch.cpp for each instruction.
#pragma once

#include "emu/rdna/machine.h"

namespace tuff::emu::rdna {

void execute(Machine& machine, Wave& w, const Step& step);

}  // namespace tuff::emu::rdna
