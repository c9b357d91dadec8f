#include "render/c_workgroup.h"

#include "base/check.h"
#include "ir/walk.h"
#include "render/c_ops.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

namespace {

// What is read of the block is read once, here: nothing that the kernel stores changes it.
void begin_block_function(CBody& b) {
  b.text.begin_function("(TUFF_BLOCK block)");
  for (size_t slot = 0; slot < b.kernel.buffers.size(); ++slot)
    b.line(fmt::format("TUFF_GLOBAL {0}* const d{1} = (TUFF_GLOBAL {0}*)TUFF_ADDRESS(block, {1});",
                       b.memory_type(b.kernel.buffers[slot].dtype), slot));
  for (size_t i = 0; i < b.kernel.variables.size(); ++i)
    b.line(
        fmt::format("const i32 n{} = TUFF_SCALAR(block, {});", i, 2 * b.kernel.buffers.size() + i));
}

// The work-item's number in its workgroup, the first axis fastest, as subgroups are filled.
std::string item_number(const CBody& b) {
  std::string text;
  uint32_t stride = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (b.kernel.local[axis] > 1) {
      text += fmt::format("{}TUFF_LOCAL({})", text.empty() ? "" : " + ", "xyz"[axis]);
      if (stride > 1) text += fmt::format(" * {}", stride);
    }
    stride *= b.kernel.local[axis];
  }
  return text.empty() ? "0" : text;
}

}  // namespace

// Pointers, then 32-bit scalars, as they lie in the argument block.
void begin_workgroup_function(CBody& b) {
  if (b.dialect.block_by_address) return begin_block_function(b);
  std::string arguments;
  const auto add = [&](const std::string& text) {
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  for (size_t slot = 0; slot < b.kernel.buffers.size(); ++slot)
    add(b.dialect.library ? fmt::format("TUFF_GLOBAL u8* b{0}, u64 o{0}", slot)
                          : fmt::format("TUFF_GLOBAL {}* d{}",
                                        b.memory_type(b.kernel.buffers[slot].dtype), slot));
  for (size_t i = 0; i < b.kernel.variables.size(); ++i) add(fmt::format("i32 n{}", i));
  b.text.begin_function(fmt::format("({})", arguments));
  for (size_t slot = 0; b.dialect.library && slot < b.kernel.buffers.size(); ++slot)
    b.line(fmt::format("TUFF_GLOBAL {0}* const d{1} = (TUFF_GLOBAL {0}*)(b{1} + o{1});",
                       b.memory_type(b.kernel.buffers[slot].dtype), slot));
}

std::string coordinate(const CBody& b, const ir::SpecialArg& s) {
  if (s.space == 'g') return fmt::format("TUFF_GROUP({})", "xyz"[s.axis]);
  if (s.space == 'l')
    return b.kernel.local[s.axis] == 1 ? "0" : fmt::format("TUFF_LOCAL({})", "xyz"[s.axis]);
  return s.axis == 0 ? "tuff_lane()" : fmt::format("TUFF_SUBGROUP({})", item_number(b));
}

void emit_workgroup_memory(CBody& b, size_t i) {
  const Node& u = *b.kernel.ops[i];
  const auto& s = u.get<ir::SharedArg>();
  const std::string name = fmt::format("s{}", s.number);
  b.line(fmt::format("TUFF_SHARED({}, {}, {});", b.memory_type(u.dtype), name, s.count));
  b.shared_bytes += static_cast<size_t>(s.count) * size_bytes(u.dtype);
  b.values[i] = {CValue{name}};
}

void emit_shuffle(CBody& b, size_t i) {
  const Node& u = *b.kernel.ops[i];
  if (!b.dialect.workgroups || size_bytes(u.dtype) != 4)
    fail<Unsupported>("C renderer: a shuffle of {}", name(u.dtype));
  const auto cast_bits = [&](DType to, DType from, const std::string& text) {
    const COperand operand{text};
    return c_alu(b.dialect, Op::Bitcast, to, from, {&operand, 1}, 1);
  };
  for (int n = 0; n < b.space.count(b.kernel.lanes[i]); ++n) {
    const std::string x = b.scalar(b.value(u.src(0).get(), b.kernel.lanes[i], n), u.dtype);
    const CValue& lane = b.value(u.src(1).get(), b.kernel.lanes[i], n);
    const std::string bits =
        fmt::format("{}({}, {})", lane.is_number() ? "tuff_broadcast" : "tuff_shuffle",
                    cast_bits(DType::U32, u.dtype, x), b.scalar(lane, u.src(1)->dtype));
    b.values[i].push_back(CValue{
        b.define(b.type_of(u.dtype), cast_bits(u.dtype, DType::U32, b.define("u32", bits)))});
  }
}

}  // namespace tuff::render
