#include "render/c_memory.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "ir/walk.h"
#include "render/c_ops.h"
#include "render/c_shuffles.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int64_t kWidestLoadBytes = 16;

}  // namespace

std::string CMemory::pointer_name(const Node& index) const {
  const Node* buffer = without_after(index.src(0).get());
  if (buffer->op == Op::Shared) return fmt::format("s{}", buffer->get<ir::SharedArg>().number);
  const auto slot = static_cast<size_t>(buffer->get<ir::ParamArg>().slot);
  // Bytes that are read as words.
  if (b_.kernel.buffers[slot].dtype != buffer->dtype)
    return fmt::format("((TUFF_GLOBAL {}*)d{})", b_.memory_type(buffer->dtype), slot);
  return fmt::format("d{}", slot);
}

// The constant stands outside the sum in 32 bits: it becomes the displacement of the instruction.
std::string CMemory::pointer(const CAccess& a) const {
  std::string text = pointer_name(a.index);
  if (!a.offset.base.empty()) text += " + " + a.offset.base;
  if (const int64_t c = a.offset.constant)
    text += fmt::format(" {} {}", c < 0 ? '-' : '+', std::abs(c));
  return text;
}

std::string CMemory::element(const CAccess& a, int l) const {
  const std::string name = pointer_name(a.index);
  if (a.offset.vector)
    return fmt::format("{}[{}]", name, b_.lane(a.offset, a.index.src(1)->dtype, l));
  const int64_t constant = a.offset.at_lane(l);
  if (a.offset.base.empty()) return fmt::format("{}[{}]", name, constant);
  if (constant == 0) return fmt::format("{}[{}]", name, a.offset.base);
  return fmt::format("({} + {})[{}]", name, a.offset.base, constant);
}

// The call of a function of the prelude that moves the lanes of a mask, without its last arguments.
std::string CMemory::masked(const char* verb, const CAccess& a) const {
  const char* constness = verb[0] == 'g' ? "const " : "";
  return fmt::format("{}_{}(({}{}*)({})", verb, c_bits(a.dtype(), a.width), constness,
                     c_bits(a.dtype(), 1), pointer(a));
}

std::string CMemory::vector_at(const CAccess& a, int width) const {
  return fmt::format("*(const {}*)({})", b_.memory_type(a.dtype(), width), pointer(a));
}

std::string CMemory::or_zero(const CAccess& a, const std::string& text) const {
  if (!a.whole_gate()) return text;
  return fmt::format("{} ? {} : {}", a.gate->base, text, b_.zero(a.dtype(), a.width));
}

CAccess CMemory::access(const Node& index, LaneMask mask, int instance) const {
  CAccess a{index, b_.value(index.src(1).get(), mask, instance), b_.width};
  if (index.src_count > 2) a.gate = &b_.value(index.src(2).get(), mask, instance);
  if (a.gate && a.gate->base == "1") a.gate = nullptr;
  return a;
}

void CMemory::claim_alignment(size_t i, const Node& index) {
  const auto bytes = static_cast<int64_t>(size_bytes(index.dtype));
  std::map<std::string, std::pair<int, int64_t>> bases;  // how many loads, aligned to what
  for (int n = 0; n < static_cast<int>(b_.values[i].size()); ++n) {
    const CValue& offset = b_.value(index.src(1).get(), b_.kernel.lanes[i], n);
    if (offset.base.empty()) continue;
    const int64_t aligned = std::min(offset.divisor * bytes, kWidestLoadBytes);
    ++bases.try_emplace(offset.base, 0, aligned).first->second.first;
  }
  for (const auto& [base, known] : bases)
    if (known.first > 1 && known.second > bytes)
      b_.line(fmt::format("TUFF_ALIGNED({} + {}, {});", pointer_name(index), base, known.second));
}

// ---- loads ----------------------------------------------------------------------------------

CValue CMemory::load(const CAccess& a) {
  const DType t = a.dtype();
  const bool is_bool = t == DType::Bool;
  if (!a.offset.varies() && !a.lane_gate()) {
    std::string text = element(a, 0);
    if (is_bool) text = fmt::format("({} != 0)", text);
    return {
        b_.define(b_.type_of(t), a.gate ? fmt::format("{} ? {} : 0", a.gate->base, text) : text)};
  }
  if (a.offset.is_contiguous()) return load_contiguous(a);
  if (a.offset.step == 1 && a.offset.every < b_.width && !is_bool && !a.whole_gate())
    return load_repeated(a);
  if (is_strided(a)) return load_strided(a);
  if (is_gathered(a)) return load_gathered(a);
  const std::string type = b_.type_of(t, b_.width);
  std::string text = fmt::format("({}){{", type);
  for (int l = 0; l < b_.width; ++l) {
    std::string item = element(a, l);
    if (is_bool) item = fmt::format("-({} != 0)", item);
    if (a.gate) item = fmt::format("{} ? {} : 0", b_.lane(*a.gate, DType::Bool, l), item);
    text += (l ? ", " : "") + item;
  }
  return CValue{.base = b_.define(type, text + "}"), .vector = true};
}

CValue CMemory::load_contiguous(const CAccess& a) {
  const DType t = a.dtype();
  const std::string type = b_.type_of(t, a.width);
  std::string text = a.lane_gate()
                         ? fmt::format("{}, {})", masked("get", a), b_.vector(*a.gate, DType::Bool))
                         : vector_at(a, a.width);
  if (t == DType::Bool)
    text = fmt::format("__builtin_convertvector({} != 0, {})", text, type);
  else if (a.lane_gate())
    text = fmt::format("({}){}", type, text);
  return CValue{.base = b_.define(type, or_zero(a, text)), .vector = true};
}

// Elements anywhere, of those lanes whose gates are open: one instruction where the CPU has it,
// instead of a branch for each lane.
bool CMemory::is_gathered(const CAccess& a) const {
  return b_.dialect.simd && a.offset.vector && a.lane_gate() && size_bytes(a.dtype()) == 4 &&
         a.index.src(1)->dtype == DType::I32 && a.width % 8 == 0;
}

CValue CMemory::load_gathered(const CAccess& a) {
  const DType t = a.dtype();
  const std::string type = b_.type_of(t, a.width);
  return {
      .base = b_.define(type, fmt::format("({})gather_{}((const {}*)({}), {}, {})", type,
                                          c_bits(t, a.width), c_bits(t, 1), pointer_name(a.index),
                                          a.offset.base, b_.vector(*a.gate, DType::Bool))),
      .vector = true};
}

// Each element is loaded once, where one of its lanes asks for it.
CValue CMemory::load_repeated(const CAccess& a) {
  const DType t = a.dtype();
  const int n = static_cast<int>(a.offset.every), count = b_.width / n;
  std::string text;
  if (a.gate) {
    const std::string lanes = b_.vector(*a.gate, DType::Bool);
    std::string any;
    for (int j = 0; j < n; ++j) {
      std::vector<int> own;
      for (int l = 0; l < count; ++l) own.push_back(l * n + j);
      const std::string some = shuffled(b_, lanes, lanes, DType::Bool, own);
      any = any.empty() ? some : b_.define(b_.type_of(DType::Bool, count), any + " | " + some);
    }
    text = fmt::format("({})get_{}((const {}*)({}), {})", b_.type_of(t, count), c_bits(t, count),
                       c_bits(t, 1), pointer(a), any);
  } else {
    text = vector_at(a, count);
  }
  const std::string loaded = b_.define(b_.type_of(t, count), text);
  std::vector<int> repeated;
  for (int l = 0; l < b_.width; ++l) repeated.push_back(l / n);
  const std::string all = shuffled(b_, loaded, loaded, t, repeated);
  if (!a.gate) return CValue{.base = all, .vector = true};
  const COperand operands[3] = {{b_.vector(*a.gate, DType::Bool), b_.width},
                                {all, b_.width},
                                {b_.zero(t, b_.width), b_.width}};
  return CValue{.base = b_.define(b_.type_of(t, b_.width),
                                  c_alu(b_.dialect, Op::Where, t, t, operands, b_.width)),
                .vector = true};
}

// ---- vectors of every n-th element ----------------------------------------------------------

// Masked loads of 32 bits are one instruction each; of other sizes only on some machines.
bool CMemory::is_strided(const CAccess& a) const {
  return b_.dialect.simd && !a.offset.vector && a.offset.every == 1 && a.offset.step > 1 &&
         a.offset.step <= kMostInterleaved && size_bytes(a.dtype()) == 4 && a.width % 8 == 0;
}

// The mask of vector v of the n contiguous ones that hold every n-th element: what lies between
// these is neither loaded nor stored.
std::string CMemory::every_nth_of_vector(int v, int n, const CAccess& a) {
  std::vector<int> lanes;
  std::string constant;
  for (int l = 0; l < a.width; ++l) {
    const int element = v * a.width + l;
    const bool wanted = element % n == 0;
    lanes.push_back(wanted ? element / n : a.width);
    constant += fmt::format("{}{}", l ? ", " : "", wanted ? -1 : 0);
  }
  if (!a.lane_gate()) return fmt::format("({}){{{}}}", b_.type_of(DType::Bool, a.width), constant);
  return shuffled(b_, b_.vector(*a.gate, DType::Bool), b_.zero(DType::Bool, a.width), DType::Bool,
                  lanes);
}

CValue CMemory::load_strided(const CAccess& a) {
  const int n = static_cast<int>(a.offset.step);
  const std::string type = b_.type_of(a.dtype(), a.width);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    const std::string mask = every_nth_of_vector(v, n, a);
    const std::string text =
        fmt::format("({}){}, {})", type, masked("get", a.at(v * a.width, 1)), mask);
    loaded.push_back(b_.define(type, or_zero(a, text)));
  }
  return CValue{.base = every_nth(b_, loaded, a.dtype(), 0, a.width), .vector = true};
}

void CMemory::store_strided(const CAccess& a, const CValue& v) {
  const DType t = a.dtype();
  const int n = static_cast<int>(a.offset.step);
  const std::string all = b_.vector(v, t);
  for (int part = 0; part < n; ++part) {
    const std::string own = shuffled(b_, all, all, t, interleaved_lanes(part, n, b_.width));
    const std::string mask = every_nth_of_vector(part, n, a);
    b_.line(fmt::format("{}{}, {}, ({})({}));",
                        a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "",
                        masked("put", a.at(part * b_.width, 1)), mask, c_bits(t, b_.width), own));
  }
}

// ---- stores ---------------------------------------------------------------------------------

void CMemory::combine(const CAccess& a, const CValue& v, Op op, DType t) {
  const std::string condition = a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "";
  const std::string place = pointer(a), x = b_.scalar(v, t);
  if (t == a.dtype()) {
    const char* what = op == Op::Add ? "ADD" : "MAX";
    return b_.line(fmt::format("{}TUFF_ATOMIC_{}({}, {});", condition, what, place, x));
  }
  const COperand operands[2] = {{"old", 1}, {x, 1}};
  b_.line(fmt::format("{}TUFF_EXCHANGE_UNTIL({}, {}, {});", condition, b_.type_of(t), place,
                      c_alu(b_.dialect, op, t, t, operands, 1)));
}

void CMemory::store(const CAccess& a, const CValue& v) {
  const DType t = a.dtype();
  const bool is_bool = t == DType::Bool;
  const std::string condition = a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "";
  if (!a.offset.varies() && !a.lane_gate() && !v.varies())
    return b_.line(fmt::format("{}{} = {};", condition, element(a, 0), b_.scalar(v, t)));
  if (a.offset.is_contiguous()) {
    std::string text = b_.vector(v, t);
    if (is_bool) text = fmt::format("__builtin_convertvector({} & 1, u8x{})", text, b_.width);
    if (a.lane_gate())
      return b_.line(fmt::format("{}, {}, ({})({}));", masked("put", a),
                                 b_.vector(*a.gate, DType::Bool), c_bits(t, b_.width), text));
    if (a.gate || b_.kernel.ops[b_.current]->arg != ir::Arg(ir::kStreaming))
      return b_.line(fmt::format("{}*({}*)({}) = {};", condition, b_.memory_type(t, b_.width),
                                 pointer(a), text));
    streams_ = true;
    return b_.line(
        fmt::format("TUFF_STREAM({}, ({}), ({}));", b_.type_of(t, b_.width), text, pointer(a)));
  }
  if (is_strided(a)) return store_strided(a, v);
  for (int l = 0; l < b_.width; ++l) {
    const std::string when =
        a.lane_gate() ? fmt::format("if ({}) ", b_.lane(*a.gate, DType::Bool, l)) : condition;
    const std::string item =
        is_bool && v.vector ? fmt::format("{} & 1", b_.lane(v, t, l)) : b_.lane(v, t, l);
    b_.line(fmt::format("{}{} = {};", when, element(a, l), item));
  }
}

}  // namespace tuff::render
