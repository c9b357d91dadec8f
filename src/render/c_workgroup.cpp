// What dialects with workgroups add to the C renderer: arguments, ids, memory in common, shuffles.
#include "base/check.h"
#include "ir/walk.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

// Pointers, then 32-bit scalars, as they lie in the argument block.
void CKernel::workgroup_header() {
  if (dialect_.block_by_address) return block_header();
  std::string arguments;
  const auto add = [&](const std::string& text) {
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  for (size_t slot = 0; slot < k_.buffers.size(); ++slot)
    add(dialect_.library
            ? fmt::format("TUFF_GLOBAL u8* b{0}, u64 o{0}", slot)
            : fmt::format("TUFF_GLOBAL {}* d{}", memory_type(k_.buffers[slot].dtype), slot));
  for (size_t i = 0; i < k_.variables.size(); ++i) add(fmt::format("i32 n{}", i));
  out_ = fmt::format("({}) {{\n", arguments);
  for (size_t slot = 0; dialect_.library && slot < k_.buffers.size(); ++slot)
    line(fmt::format("TUFF_GLOBAL {0}* const d{1} = (TUFF_GLOBAL {0}*)(b{1} + o{1});",
                     memory_type(k_.buffers[slot].dtype), slot));
}

// What is read of the block is read once, here: nothing that the kernel stores changes it.
void CKernel::block_header() {
  out_ = "(TUFF_BLOCK block) {\n";
  for (size_t slot = 0; slot < k_.buffers.size(); ++slot)
    line(fmt::format("TUFF_GLOBAL {0}* const d{1} = (TUFF_GLOBAL {0}*)TUFF_ADDRESS(block, {1});",
                     memory_type(k_.buffers[slot].dtype), slot));
  for (size_t i = 0; i < k_.variables.size(); ++i)
    line(fmt::format("const i32 n{} = TUFF_SCALAR(block, {});", i, 2 * k_.buffers.size() + i));
}

// The work-item's number in its workgroup, the first axis fastest, as subgroups are filled.
std::string CKernel::item_number() const {
  std::string text;
  uint32_t stride = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (k_.local[axis] > 1) {
      text += fmt::format("{}TUFF_LOCAL({})", text.empty() ? "" : " + ", "xyz"[axis]);
      if (stride > 1) text += fmt::format(" * {}", stride);
    }
    stride *= k_.local[axis];
  }
  return text.empty() ? "0" : text;
}

std::string CKernel::coordinate(const ir::SpecialArg& s) const {
  if (s.space == 'g') return fmt::format("TUFF_GROUP({})", "xyz"[s.axis]);
  if (s.space == 'l')
    return k_.local[s.axis] == 1 ? "0" : fmt::format("TUFF_LOCAL({})", "xyz"[s.axis]);
  return s.axis == 0 ? "tuff_lane()" : fmt::format("TUFF_SUBGROUP({})", item_number());
}

void CKernel::emit_workgroup_memory(size_t i) {
  const Node& u = *k_.ops[i];
  const auto& s = u.get<ir::SharedArg>();
  const std::string name = fmt::format("s{}", s.number);
  line(fmt::format("TUFF_SHARED({}, {}, {});", memory_type(u.dtype), name, s.count));
  shared_bytes_ += static_cast<size_t>(s.count) * size_bytes(u.dtype);
  values_[i] = {CValue{name}};
}

// 32-bit values: kernel makes no others (kernel/analysis/subgroup.h).
void CKernel::emit_shuffle(size_t i) {
  const Node& u = *k_.ops[i];
  if (!dialect_.workgroups || size_bytes(u.dtype) != 4)
    fail<Unsupported>("C renderer: a shuffle of {}", name(u.dtype));
  const auto cast_bits = [&](DType to, DType from, const std::string& text) {
    const COperand operand{text};
    return c_alu(dialect_, Op::Bitcast, to, from, {&operand, 1}, 1);
  };
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    const std::string x = scalar(value(u.src(0).get(), k_.lanes[i], n), u.dtype);
    const CValue& lane = value(u.src(1).get(), k_.lanes[i], n);
    const std::string bits =
        fmt::format("{}({}, {})", lane.is_number() ? "tuff_broadcast" : "tuff_shuffle",
                    cast_bits(DType::U32, u.dtype, x), scalar(lane, u.src(1)->dtype));
    values_[i].push_back(
        CValue{define(type_of(u.dtype), cast_bits(u.dtype, DType::U32, define("u32", bits)))});
  }
}

}  // namespace tuff::render
