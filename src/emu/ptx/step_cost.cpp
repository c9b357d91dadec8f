#include "emu/ptx/step_cost.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "emu/ptx/form.h"

namespace tuff::emu::ptx {
namespace {

using profile::FloatKind;
using profile::StepClass;
using profile::StepCost;
using Text = std::string_view;

// Cycles for which a warp keeps a pipeline of its partition.
struct Rates {
  uint16_t half, fp64;
  // A product of matrices of so many multiply-adds of f16 with sums of f32 takes a cycle.
  uint16_t products_per_cycle;
  bool narrow_sums_are_faster;  // sums of f16 in half the time
};
// CUDA guide: f16 128 and 256 results per clock and SM (a pair counts twice), f64 2 and 64. Tensor
// cores: whitepapers of GA102, Ada and H100; those of the first two are slower with sums of f32.
constexpr Rates kGeForce{2, 64, 64, true}, kHopper{1, 2, 512, false};

constexpr uint8_t kAluLatency = 4;  // Abdelkhalik and others, arXiv:2208.11174, Table V
constexpr uint8_t kXuLatency = 18, kFp64Latency = 8, kTensorLatency = 33;
constexpr uint16_t kAlu = 2, kFmaHeavy = 2, kXu = 8;  // 64, 64 and 16 lanes per clock and SM

bool is_any(Text text, std::initializer_list<Text> texts) {
  return std::ranges::find(texts, text) != texts.end();
}
bool is_half(Type t) {
  return t == Type::F16 || t == Type::F16x2 || t == Type::BF16 || t == Type::BF16x2;
}
bool is_pair(Type t) { return t == Type::F16x2 || t == Type::BF16x2; }

StepCost cost_on(StepClass kind, uint16_t cycles, uint8_t latency = kAluLatency, uint16_t slots = 1) {
  StepCost cost{kind};
  cost.issue_cycles = cycles;
  cost.latency = latency;
  cost.slots = slots;
  return cost;
}
// What becomes n instructions of a kind, one after the other.
StepCost several(StepCost cost, uint16_t n) {
  cost.issue_cycles = uint16_t(cost.issue_cycles * n);
  cost.latency = uint8_t(std::min(255, cost.latency * n));
  cost.slots = uint16_t(cost.slots * n);
  return cost;
}
StepCost no_cost() { return cost_on(StepClass::Other, 0, 0, 0); }
StepCost alu_cost() { return cost_on(StepClass::Alu, kAlu); }
StepCost fma_cost(uint16_t flops, bool mad) {
  StepCost cost = cost_on(StepClass::Fma, 1);
  cost.flops = flops;
  cost.is_mad = mad;
  return cost;
}
StepCost integer_product(bool mad) {
  StepCost cost = cost_on(StepClass::Fma, kFmaHeavy);
  cost.is_mad = mad;
  return cost;
}

// m16n8k16 and the like: 16 x 8 results of k products each.
StepCost matrix_cost(const Form& f, const Rates& rates) {
  Text shape;
  for (const Text m : f.modifiers)
    if (m.starts_with("m16n8k")) shape = m.substr(6);
  uint32_t depth = 16;
  std::from_chars(shape.data(), shape.data() + shape.size(), depth);
  const uint32_t products = 16 * 8 * depth;
  const Type sums = f.type(0), factors = f.type(1);
  uint32_t cycles = std::max(1u, products / rates.products_per_cycle);
  if (factors == Type::TF32) cycles *= 2;
  const bool bytes = factors == Type::U8 || factors == Type::S8;
  // Bytes: four times the rate of f16 with sums of f32 where that is the slower one, else twice.
  if (bytes) cycles = std::max(1u, cycles / (rates.narrow_sums_are_faster ? 4 : 2));
  if (sums == Type::F16 && rates.narrow_sums_are_faster) cycles /= 2;
  StepCost cost =
      cost_on(StepClass::Tensor, uint16_t(cycles), uint8_t(std::max<uint32_t>(cycles, kTensorLatency)));
  cost.is_mad = true;
  cost.floats = FloatKind::Matrix;
  cost.flops = bytes ? uint16_t(0) : uint16_t(2 * products);
  return cost;
}

StepCost double_cost(const Form& f, const Rates& rates) {
  const bool mad = f.base == "fma" || f.base == "mad";
  StepCost cost = cost_on(StepClass::Fp64, rates.fp64,
                     uint8_t(std::max<uint16_t>(rates.fp64, kFp64Latency)));
  cost.is_mad = mad;
  cost.floats = FloatKind::Double;
  if (is_any(f.base, {"div", "rcp", "sqrt", "rsqrt"})) cost = several(cost, 10);
  const bool computes = is_any(f.base, {"add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt"});
  cost.flops = mad ? 2 : computes ? 1 : 0;
  return cost;
}

StepCost half_cost(const Form& f, const Rates& rates) {
  const bool mad = f.base == "fma";
  StepCost cost = cost_on(StepClass::Half, rates.half);
  if (is_any(f.base, {"ex2", "tanh"})) cost = cost_on(StepClass::Xu, kXu, kXuLatency);
  const uint16_t lanes = is_pair(f.type()) ? 2 : 1;
  const bool computes = is_any(f.base, {"add", "sub", "mul", "ex2", "tanh"});
  cost.floats = FloatKind::Half;
  cost.flops = mad ? uint16_t(2 * lanes) : computes ? lanes : uint16_t(0);
  cost.is_mad = mad;
  return cost;
}

StepCost single_cost(const Form& f) {
  if (is_any(f.base, {"fma", "mad"})) return fma_cost(2, true);
  if (is_any(f.base, {"add", "sub", "mul"})) return fma_cost(1, false);
  // The IEEE forms: an approximation, and steps of Newton's with a test of what is rare.
  const bool exact = !f.has("approx") && !f.has("full");
  if (is_any(f.base, {"div", "rcp", "sqrt"}) && exact) {
    StepCost cost = cost_on(StepClass::Xu, kXu, 40, f.base == "rcp" ? 6 : 9);
    cost.flops = 1;
    return cost;
  }
  if (is_any(f.base, {"div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"})) {
    StepCost cost = cost_on(StepClass::Xu, kXu, kXuLatency, f.base == "div" ? 2 : 1);
    cost.flops = 1;
    return cost;
  }
  return alu_cost();  // abs, neg, min, max, copysign, testp
}

StepCost conversion_cost(const Form& f, const Rates& rates) {
  const Type to = f.type(0), from = f.type(1);
  if (to == Type::F64 || from == Type::F64)
    return cost_on(StepClass::Xu, std::max<uint16_t>(kXu, rates.fp64), kXuLatency);
  const bool to_float = is_float(to), from_float = is_float(from);
  if (to_float && from_float) return cost_on(StepClass::Half, kAlu);
  if (to_float || from_float) return cost_on(StepClass::Xu, kXu, kXuLatency);
  // Between integers: a sign is put in, or what is above is cut off when it is used.
  return bits_of(to) > bits_of(from) ? alu_cost() : no_cost();
}

StepCost integer_cost(const Form& f) {
  const Type type = f.type();
  const uint32_t bits = bits_of(type);
  const bool wide = f.has("wide"), mad = is_any(f.base, {"mad", "madc", "mad24"});
  if (is_any(f.base, {"div", "rem"})) return several(alu_cost(), bits == 64 ? 70 : 18);
  if (mad || is_any(f.base, {"mul", "mul24", "dp4a", "dp2a"})) {
    const bool dot = f.base.starts_with("dp");
    const StepCost product = integer_product(mad || dot);
    return bits == 64 && !wide ? several(product, f.has("hi") ? 8 : 3) : product;
  }
  if (is_any(f.base, {"popc", "clz", "bfind", "brev"}))
    return several(cost_on(StepClass::Xu, kXu, kXuLatency), bits == 64 ? 2 : 1);
  if (is_any(f.base, {"bfe", "sad"})) return several(alu_cost(), 2);
  if (f.base == "bfi") return several(alu_cost(), 3);
  return several(alu_cost(), bits == 64 ? 2 : 1);
}

StepCost memory_cost(const Form& f) {
  const bool shared = f.has("shared") || f.has("shared::cta");
  if (f.base == "ldmatrix" || (shared && f.base != "cp")) return cost_on(StepClass::Lds, 1, 1);
  if (f.base == "cp") return cost_on(f.has("wait_all") || f.has("wait_group") ? StepClass::Wait
                                : f.has("commit_group")                 ? StepClass::Other
                                                                        : StepClass::VmemLoad,
                                1, 1);
  if (f.base == "atom" || f.base == "red") return cost_on(StepClass::Atomic, 1, 1);
  // Arguments are operands of what uses them.
  if (f.has("param")) return no_cost();
  if (f.has("const")) return cost_on(StepClass::Constant, 1, 1);
  return cost_on(f.base == "st" ? StepClass::VmemStore : StepClass::VmemLoad, 1, 1);
}

StepCost control_cost(const Form& f) {
  const bool warp = f.has("warp");
  if (is_any(f.base, {"bar", "barrier"}))
    return cost_on(warp ? StepClass::Wait : StepClass::Barrier, 1, 1);
  if (is_any(f.base, {"membar", "fence", "nanosleep"})) return cost_on(StepClass::Wait, 1, 1);
  return cost_on(StepClass::Branch, 1, 1);
}

StepCost cost_of_form(const Form& f, const Rates& rates) {
  if (f.base == "mma") return matrix_cost(f, rates);
  if (is_any(f.base, {"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix"})) return memory_cost(f);
  if (is_any(f.base, {"bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier", "membar",
                      "fence", "nanosleep"}))
    return control_cost(f);
  // Registers are renamed, and constants are operands.
  if (is_any(f.base, {"mov", "cvta", "isspacep", "prefetch", "prefetchu", "pmevent", "brkpt"}))
    return no_cost();
  if (is_any(f.base, {"shfl", "match"})) return cost_on(StepClass::Shuffle, 1, 1);
  if (f.base == "redux") return cost_on(StepClass::Xu, kXu, kXuLatency);
  if (is_any(f.base, {"vote", "activemask", "lop3", "prmt"})) return alu_cost();
  if (is_any(f.base, {"setp", "set", "selp", "slct"})) {
    const Type type = f.type(f.base == "set" ? 1 : 0);
    if (is_half(type)) return cost_on(StepClass::Half, rates.half);
    if (type == Type::F64 && f.base == "setp") return double_cost(f, rates);
    return several(alu_cost(), bits_of(type) == 64 ? 2 : 1);
  }
  if (f.base == "cvt") return conversion_cost(f, rates);
  if (f.type() == Type::F64) return double_cost(f, rates);
  if (is_half(f.type())) return half_cost(f, rates);
  return f.type() == Type::F32 ? single_cost(f) : integer_cost(f);
}

}  // namespace

StepCost cost_of(const std::string& spelling, const std::string& target) {
  Form form;
  std::string why;
  if (!match(spelling, form, why)) return {};
  return cost_of_form(form, target < "sm_90" ? kGeForce : kHopper);
}

}  // namespace tuff::emu::ptx
