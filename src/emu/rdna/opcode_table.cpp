#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {
namespace {

// Where VOP3 has the operations of a short encoding. ISA table 15.1 and 15.4.
constexpr uint16_t number_in_vop3(Encoding encoding, int number) {
  const int first = encoding == Encoding::VOP1 ? 0x180 : encoding == Encoding::VOP2 ? 0x100 : 0;
  return uint16_t(first + number);
}

constexpr OpcodeRow kRows[] = {
#define TUFF_RDNA(encoding, number, id, text, operands) \
  {Encoding::encoding, number, Op::id, text, operands},
#define TUFF_RDNA_AGAIN TUFF_RDNA
#include "emu/rdna/opcodes.def"
};

constexpr const char* kNames[] = {
#define TUFF_RDNA(encoding, number, id, text, operands) #id,
#include "emu/rdna/opcodes.def"
};

}  // namespace

std::span<const OpcodeRow> opcode_rows() { return kRows; }
const char* op_name(Op op) { return kNames[size_t(op)]; }

}  // namespace tuff::emu::rdna
