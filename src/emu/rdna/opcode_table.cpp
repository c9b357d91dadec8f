#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {
namespace {

constexpr OpcodeRow kRows[] = {
#define TUFF_RDNA(encoding, number, id, text, operands) \
  {Encoding::encoding, number, Op::id, text, operands},
#include "emu/rdna/opcodes.def"
};

constexpr const char* kNames[] = {
#define TUFF_RDNA_OP(id) #id,
#include "emu/rdna/opcodes.def"
};

}  // namespace

std::span<const OpcodeRow> opcode_rows() { return kRows; }
const char* op_name(Op op) { return kNames[size_t(op)]; }

}  // namespace tuff::emu::rdna
