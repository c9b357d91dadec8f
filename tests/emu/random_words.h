// Words that are likely to be an instruction of a given opcode, for tests of the decoder and of
// what instructions do.
#pragma once

#include <vector>

#include "base/split_mix.h"
#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {

std::vector<uint32_t> random_words(const OpcodeRow& row, SplitMix64& random);

}  // namespace tuff::emu::rdna
