// One ALU op as a C expression. Called by the C renderer's walker.
// Must never know of lanes beyond the width of its operands, nor of memory.
#pragma once

#include <span>
#include <string>

#include <tuff/dtype.h>
#include "ir/op.h"
#include "render/c_dialect.h"

namespace tuff::render {

struct COperand {
  std::string text;  // a name, a literal or something in parentheses
  int width = 1;
};

// All operands have `width` lanes, except that a Where's condition may be a scalar beside vectors.
// `from` is the dtype of the first operand (of the second for Where), `to` the result's.
// Unsupported, naming op and dtype, for what should have been decomposed.
std::string c_alu(const CDialect& d, ir::Op op, DType to, DType from,
                  std::span<const COperand> x, int width);

}  // namespace tuff::render
