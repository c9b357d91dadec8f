#include "emu/rdna/step_cost.h"

#include <algorithm>
#include <string_view>

namespace tuff::emu::rdna {
namespace {

using Text = std::string_view;

bool has(Text text, Text part) { return text.find(part) != Text::npos; }

bool has_any(Text text, std::initializer_list<Text> parts) {
  return std::ranges::any_of(parts, [&](Text part) { return has(text, part); });
}

bool starts_with_any(Text text, std::initializer_list<Text> parts) {
  return std::ranges::any_of(parts, [&](Text part) { return text.starts_with(part); });
}

bool is_float_text(Text text) { return has_any(text, {"_f16", "_f32", "_f64", "bf16"}); }

bool is_transcendental(Text text) {
  return starts_with_any(text, {"v_rcp_", "v_rsq_", "v_sqrt_", "v_exp_", "v_log_", "v_sin_",
                                "v_cos_"});
}

// Additions, multiplications and what has both; comparisons, minima and conversions are none.
uint16_t vector_flops(Text text, bool transcendental) {
  if (!is_float_text(text)) return 0;
  const bool packed = text.starts_with("v_pk_");
  if (has(text, "dot2")) return 4;
  if (has_any(text, {"_fma", "div_fmas"})) return packed ? 4 : 2;
  if (has_any(text, {"_add_f", "_sub_f", "_subrev_f", "_mul_f", "_mul_dx9_zero_f"}))
    return packed ? 2 : 1;
  return transcendental ? 1 : 0;
}

StepCost matrix_cost(Text text) {
  StepCost cost{StepClass::Wmma};
  cost.issue_cycles = cost.latency = has(text, "iu4") ? 16 : 32;
  cost.is_mad = true;
  cost.floats = FloatKind::Matrix;
  cost.flops = has(text, "_i32_") ? 0 : 2 * 16 * 16 * 16;
  return cost;
}

StepCost vector_cost(Text text) {
  if (text.starts_with("v_wmma")) return matrix_cost(text);
  StepCost cost{StepClass::Valu};
  cost.latency = 5;
  cost.is_mad = has_any(text, {"_fma", "_mad_", "dot"});
  const bool transcendental = is_transcendental(text);
  cost.flops = vector_flops(text, transcendental);
  if (has(text, "_f64")) {
    cost.kind = StepClass::ValuF64;
    cost.floats = FloatKind::Double;
    cost.issue_cycles = 16;
    cost.latency = transcendental ? 24 : 22;
  } else if (transcendental) {
    cost.kind = StepClass::ValuTrans;
    cost.issue_cycles = 4;
    cost.latency = 10;
  } else if (has_any(text, {"_mul_lo_u32", "_mul_hi_u32", "_mul_hi_i32", "_mad_u64", "_mad_i64"}) &&
             !has(text, "24")) {
    cost.issue_cycles = 4;
    cost.latency = 8;
  } else if (has_any(text, {"_b64", "_i64", "_u64"})) {
    cost.issue_cycles = 2;
    cost.latency = 6;
  }
  return cost;
}

StepCost dual_cost(const Step& step) {
  StepCost first = vector_cost(step.instruction.row->text);
  const StepCost second = vector_cost(step.instruction.second->text);
  first.kind = StepClass::Dual;
  first.is_mad |= second.is_mad;
  first.flops = uint16_t(first.flops + second.flops);
  return first;
}

StepCost scalar_cost(Text text) {
  if (text == "s_barrier") return {StepClass::Barrier};
  if (starts_with_any(text, {"s_waitcnt", "s_wait_", "s_delay_alu", "s_sleep"}))
    return {StepClass::Wait};
  if (starts_with_any(text, {"s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call"}))
    return {StepClass::Branch, 3};
  return {StepClass::Salu, 1, 2};
}

StepCost memory_cost(Text text) {
  if (has(text, "_atomic_")) return {StepClass::Atomic};
  if (has(text, "_store_")) return {StepClass::VmemStore};
  if (has(text, "_load_")) return {StepClass::VmemLoad};
  return {};  // invalidations
}

}  // namespace

StepCost cost_of(const Step& step) {
  const Instruction& i = step.instruction;
  if (!i.row) return {};
  if (i.second) return dual_cost(step);
  const Text text = i.row->text;
  switch (i.encoding()) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPK:
    case Encoding::SOPC: return scalar_cost(text);
    case Encoding::SOPP: {
      const StepCost cost = scalar_cost(text);
      return cost.kind == StepClass::Salu ? StepCost{} : cost;
    }
    case Encoding::SMEM: return has(text, "_load_") ? StepCost{StepClass::Smem} : StepCost{};
    case Encoding::DS: return {StepClass::Lds};
    case Encoding::FLAT:
    case Encoding::SCRATCH:
    case Encoding::GLOBAL:
    case Encoding::MUBUF: return memory_cost(text);
    default: return text == "v_nop" ? StepCost{} : vector_cost(text);
  }
}

}  // namespace tuff::emu::rdna
