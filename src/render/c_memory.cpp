// Loads and stores of the C renderer: registers, contiguous vectors, single lanes, gates.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "ir/walk.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int64_t kMostInterleaved = 4;  // vectors that are shuffled into one

std::string pointer_name(const Node& index) {
  const Node* buffer = without_after(index.src(0).get());
  return buffer->op == Op::Shared ? fmt::format("s{}", buffer->get<ir::SharedArg>().number)
                                  : fmt::format("d{}", buffer->get<ir::ParamArg>().slot);
}

}  // namespace

// The constant stands outside the sum in 32 bits: it becomes the displacement of the instruction.
std::string CKernel::pointer(const Node& index, const CValue& offset) const {
  std::string text = pointer_name(index);
  if (!offset.base.empty()) text += " + " + offset.base;
  if (offset.constant)
    text += fmt::format(" {} {}", offset.constant < 0 ? '-' : '+', std::abs(offset.constant));
  return text;
}

std::string CKernel::element(const Node& index, const CValue& offset, DType t, int l) const {
  const std::string name = pointer_name(index);
  if (offset.vector) return fmt::format("{}[{}]", name, lane(offset, t, l));
  const int64_t constant = offset.at_lane(l);
  if (offset.base.empty()) return fmt::format("{}[{}]", name, constant);
  if (constant == 0) return fmt::format("{}[{}]", name, offset.base);
  return fmt::format("({} + {})[{}]", name, offset.base, constant);
}

// The call of a function of the prelude that moves the lanes of a mask, without its last arguments.
std::string CKernel::masked(const char* verb, DType t, const Node& index,
                            const CValue& offset) const {
  const char* constness = verb[0] == 'g' ? "const " : "";
  return fmt::format("{}_{}(({}{}*)({})", verb, c_bits(t, width_), constness, c_bits(t, 1),
                     pointer(index, offset));
}

// ---- loads ----------------------------------------------------------------------------------

void CKernel::emit_load(size_t i) {
  const Node* from = without_after(k_.ops[i]->src(0).get());
  const LaneMask mask = k_.lanes[i];
  std::vector<CValue>& out = values_[i];
  out.resize(static_cast<size_t>(space_.count(scalar_mask(mask))));
  const bool gated = from->op == Op::Index && from->src_count > 2;
  const bool scalars = !dialect_.simd || !(mask & vector_mask_);
  if (gated && scalars && out.size() > 1) return load_behind_gates(i, *from);
  for (int n = 0; n < static_cast<int>(out.size()); ++n) {
    if (!out[n].base.empty()) continue;  // loaded with an instance before it
    if (from->op == Op::Register) {
      out[n] = load_register(i, from, n);
    } else if (const int between = interleaved_bit(*from, mask, n); between >= 0) {
      load_interleaved(i, *from, n, between);
    } else if (const int across = transposed_bit(*from, mask, n); across >= 0) {
      load_transposed(i, *from, n, across);
    } else {
      out[n] = load(*from, mask, n);
    }
  }
}

// Where the vector's lanes walk memory with a stride and some other lanes, of a number that divides
// theirs, walk it step by step: the bit of those. Vectors are loaded along them and turned in
// registers.
int CKernel::transposed_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & vector_mask_) || index.src_count > 2 || index.dtype == DType::Bool) return -1;
  const Node* offsets = index.src(1).get();
  const LaneMask scalars = scalar_mask(mask);
  const CValue& first = value(offsets, mask, instance);
  if (first.vector || first.step == 0 || first.step == 1 || first.every > 1 || width_ < 4)
    return -1;
  for (int bit = 0; bit < space_.bits(); ++bit) {
    const int n = space_.size(bit);
    if (!(scalars >> bit & 1) || n < 4 || width_ % n != 0) continue;
    if (!std::has_single_bit(static_cast<unsigned>(n))) continue;
    if (space_.digit(scalars, instance, bit) != 0) continue;
    const int stride = space_.stride(scalars, bit);
    bool in_steps = true;
    for (int j = 1; j < n && in_steps; ++j) {
      const CValue& next = value(offsets, mask, instance + j * stride);
      in_steps =
          next.base == first.base && next.step == first.step && next.constant == first.constant + j;
    }
    if (in_steps) return bit;
  }
  return -1;
}

void CKernel::load_transposed(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = k_.lanes[i];
  const CValue& offset = value(index.src(1).get(), mask, first);
  const int n = space_.size(bit);
  const std::string type = type_of(index.dtype, n);
  std::vector<std::vector<std::string>> columns(
      static_cast<size_t>(n));  // each of width_ / n parts
  for (int block = 0; block < width_; block += n) {
    std::vector<std::string> rows;
    for (int l = block; l < block + n; ++l) {
      const CValue at{.base = offset.base, .constant = offset.constant + offset.step * l};
      rows.push_back(define(
          type, fmt::format("*(const {}*)({})", memory_type(index.dtype, n), pointer(index, at))));
    }
    rows = transposed(std::move(rows), index.dtype);
    for (int j = 0; j < n; ++j) columns[j].push_back(rows[j]);
  }
  const int stride = space_.stride(scalar_mask(mask), bit);
  for (int j = 0; j < n; ++j)
    values_[i][first + j * stride] =
        CValue{.base = joined(std::move(columns[j]), index.dtype, n), .vector = true};
}

// Vectors of `n` lanes side by side as one.
std::string CKernel::joined(std::vector<std::string> parts, DType t, int n) {
  for (; parts.size() > 1; n *= 2) {
    std::string lanes;
    for (int l = 0; l < 2 * n; ++l) lanes += fmt::format(", {}", l);
    std::vector<std::string> next;
    for (size_t p = 0; p < parts.size(); p += 2)
      next.push_back(define(type_of(t, 2 * n), fmt::format("__builtin_shufflevector({}, {}{})",
                                                           parts[p], parts[p + 1], lanes)));
    parts = std::move(next);
  }
  return parts[0];
}

// log2(n) rounds; each interleaves the first half of the vectors with the second, so that an
// element's lane and vector numbers, taken as one, turn by one bit.
std::vector<std::string> CKernel::transposed(std::vector<std::string> rows, DType t) {
  const int n = static_cast<int>(rows.size()), half = n / 2;
  std::string low, high;
  for (int l = 0; l < half; ++l) {
    low += fmt::format(", {}, {}", l, l + n);
    high += fmt::format(", {}, {}", l + half, l + half + n);
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<std::string> next;
    for (int v = 0; v < half; ++v)
      for (const std::string& lanes : {low, high})
        next.push_back(define(type_of(t, n), fmt::format("__builtin_shufflevector({}, {}{})",
                                                         rows[v], rows[v + half], lanes)));
    rows = std::move(next);
  }
  return rows;
}

CValue CKernel::load(const Node& index, LaneMask mask, int instance) {
  const DType t = index.dtype, offset_type = index.src(1)->dtype;
  const CValue& offset = value(index.src(1).get(), mask, instance);
  const CValue* gate = index.src_count > 2 ? &value(index.src(2).get(), mask, instance) : nullptr;
  if (gate && gate->base == "1") gate = nullptr;
  const bool lane_gate = gate && gate->varies();
  const std::string condition = gate && !lane_gate ? gate->base + " ? " : "";
  const bool is_bool = t == DType::Bool;
  if (!offset.varies() && !lane_gate) {
    std::string text = element(index, offset, offset_type, 0);
    if (is_bool) text = fmt::format("({} != 0)", text);
    return {define(type_of(t), condition + text + (gate ? " : 0" : ""))};
  }
  const std::string type = type_of(t, width_);
  if (offset.is_contiguous()) return load_contiguous(index, offset, gate);
  if (offset.step == 1 && offset.every < width_ && !is_bool && !condition.size())
    return load_repeated(index, offset, gate);
  if (is_strided(offset, t)) return load_strided(index, offset, gate);
  std::string text = fmt::format("({}){{", type);
  for (int l = 0; l < width_; ++l) {
    std::string item = element(index, offset, offset_type, l);
    if (is_bool) item = fmt::format("-({} != 0)", item);
    if (gate) item = fmt::format("{} ? {} : 0", lane(*gate, DType::Bool, l), item);
    text += (l ? ", " : "") + item;
  }
  return CValue{.base = define(type, text + "}"), .vector = true};
}

// Where these are no vectors, what has one gate is loaded behind one branch, so that the compiler
// sees neighbours. Each element once.
void CKernel::load_behind_gates(size_t i, const Node& index) {
  const LaneMask mask = k_.lanes[i];
  std::vector<std::string> gates;
  for (size_t n = 0; n < values_[i].size(); ++n) {
    const std::string gate = value(index.src(2).get(), mask, static_cast<int>(n)).base;
    if (std::find(gates.begin(), gates.end(), gate) == gates.end()) gates.push_back(gate);
  }
  for (const std::string& gate : gates) {
    std::vector<std::pair<std::string, std::string>> loads;  // element, variable
    for (size_t n = 0; n < values_[i].size(); ++n) {
      const int instance = static_cast<int>(n);
      if (value(index.src(2).get(), mask, instance).base != gate) continue;
      const CValue& offset = value(index.src(1).get(), mask, instance);
      const std::string text = element(index, offset, index.src(1)->dtype, 0);
      auto known = std::find_if(loads.begin(), loads.end(),
                                [&](const auto& load) { return load.first == text; });
      if (known == loads.end()) {
        loads.emplace_back(text, fmt::format("v{}_{}", i, variables_++));
        known = loads.end() - 1;
      }
      values_[i][n] = CValue{known->second};
    }
    for (const auto& [text, variable] : loads)
      line(fmt::format("{} {} = 0;", type_of(index.dtype), variable));
    line(fmt::format("if ({}) {{", gate));
    ++indent_;
    for (const auto& [text, variable] : loads)
      line(fmt::format("{} = {}{};", variable, text, index.dtype == DType::Bool ? " != 0" : ""));
    --indent_;
    line("}");
  }
}

CValue CKernel::load_contiguous(const Node& index, const CValue& offset, const CValue* gate) {
  const DType t = index.dtype;
  const bool is_bool = t == DType::Bool, lane_gate = gate && gate->varies();
  const std::string type = type_of(t, width_);
  std::string text =
      lane_gate ? masked("get", t, index, offset) + fmt::format(", {})", vector(*gate, DType::Bool))
                : fmt::format("*(const {}*)({})", memory_type(t, width_), pointer(index, offset));
  if (is_bool)
    text = fmt::format("__builtin_convertvector({} != 0, {})", text, type);
  else if (lane_gate)
    text = fmt::format("({}){}", type, text);
  if (gate && !lane_gate) text = fmt::format("{} ? {} : ({})(0)", gate->base, text, type);
  return CValue{.base = define(type, text), .vector = true};
}

// A vector of lanes of two others: those of `a` are numbered first.
std::string CKernel::shuffled(const std::string& a, const std::string& b, DType t,
                              std::span<const int> lanes) {
  std::string text;
  for (const int l : lanes) text += fmt::format(", {}", l);
  return define(type_of(t, static_cast<int>(lanes.size())),
                fmt::format("__builtin_shufflevector({}, {}{})", a, b, text));
}

// ---- neighbours that share an element -------------------------------------------------------

// Each element is loaded once, where one of its lanes asks for it.
CValue CKernel::load_repeated(const Node& index, const CValue& offset, const CValue* gate) {
  const DType t = index.dtype;
  const int n = static_cast<int>(offset.every), count = width_ / n;
  std::string text;
  if (gate) {
    const std::string lanes = vector(*gate, DType::Bool);
    std::string any;
    for (int j = 0; j < n; ++j) {
      std::vector<int> own;
      for (int l = 0; l < count; ++l) own.push_back(l * n + j);
      const std::string some = shuffled(lanes, lanes, DType::Bool, own);
      any = any.empty() ? some : define(type_of(DType::Bool, count), any + " | " + some);
    }
    text = fmt::format("({})get_{}((const {}*)({}), {})", type_of(t, count), c_bits(t, count),
                       c_bits(t, 1), pointer(index, offset), any);
  } else {
    text = fmt::format("*(const {}*)({})", memory_type(t, count), pointer(index, offset));
  }
  const std::string loaded = define(type_of(t, count), text);
  std::vector<int> repeated;
  for (int l = 0; l < width_; ++l) repeated.push_back(l / n);
  const std::string all = shuffled(loaded, loaded, t, repeated);
  if (!gate) return CValue{.base = all, .vector = true};
  const COperand operands[3] = {{vector(*gate, DType::Bool), width_},
                                {all, width_},
                                {fmt::format("({})(0)", type_of(t, width_)), width_}};
  return CValue{
      .base = define(type_of(t, width_), c_alu(dialect_, Op::Where, t, t, operands, width_)),
      .vector = true};
}

// ---- vectors of every n-th element ----------------------------------------------------------

// Masked loads of 32 bits are one instruction each; of other sizes only on some machines.
bool CKernel::is_strided(const CValue& offset, DType t) const {
  return dialect_.simd && !offset.vector && offset.every == 1 && offset.step > 1 &&
         offset.step <= kMostInterleaved && size_bytes(t) == 4 && width_ % 8 == 0;
}

// The mask of vector v of the n contiguous ones that hold every n-th element: what lies between
// these is neither loaded nor stored. `gate`: of each lane; null: all.
std::string CKernel::every_nth_of_vector(int v, int n, const CValue* gate) {
  const std::string type = type_of(DType::Bool, width_);
  std::vector<int> lanes;
  std::string constant;
  for (int l = 0; l < width_; ++l) {
    const int element = v * width_ + l;
    const bool wanted = element % n == 0;
    lanes.push_back(wanted ? element / n : width_);
    constant += fmt::format("{}{}", l ? ", " : "", wanted ? -1 : 0);
  }
  if (!gate) return fmt::format("({}){{{}}}", type, constant);
  return shuffled(vector(*gate, DType::Bool), fmt::format("({})(0)", type), DType::Bool, lanes);
}

CValue CKernel::load_strided(const Node& index, const CValue& offset, const CValue* gate) {
  const DType t = index.dtype;
  const int n = static_cast<int>(offset.step);
  const bool lane_gate = gate && gate->varies();
  const std::string type = type_of(t, width_);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    const std::string mask = every_nth_of_vector(v, n, lane_gate ? gate : nullptr);
    const CValue at{.base = offset.base, .constant = offset.constant + v * width_, .step = 1};
    std::string text = fmt::format("({}){}, {})", type, masked("get", t, index, at), mask);
    if (gate && !lane_gate) text = fmt::format("{} ? {} : ({})(0)", gate->base, text, type);
    loaded.push_back(define(type, text));
  }
  return CValue{.base = every_nth(loaded, t, 0), .vector = true};
}

void CKernel::store_strided(const Node& index, const CValue& offset, const CValue* gate,
                            const CValue& v) {
  const DType t = index.dtype;
  const int n = static_cast<int>(offset.step);
  const bool lane_gate = gate && gate->varies();
  const std::string all = vector(v, t);
  for (int part = 0; part < n; ++part) {
    std::vector<int> lanes;
    for (int l = 0; l < width_; ++l) lanes.push_back((part * width_ + l) / n);
    const std::string own = shuffled(all, all, t, lanes);
    const std::string mask = every_nth_of_vector(part, n, lane_gate ? gate : nullptr);
    const CValue at{.base = offset.base, .constant = offset.constant + part * width_, .step = 1};
    line(fmt::format("{}{}, {}, ({})({}));",
                     gate && !lane_gate ? fmt::format("if ({}) ", gate->base) : "",
                     masked("put", t, index, at), mask, c_bits(t, width_), own));
  }
}

// The lanes of a bit walk one by one what lies between the elements of the vector's lanes.
bool CKernel::is_interleaved(const Node& index, LaneMask mask, int instance, int bit) const {
  const LaneMask scalars = scalar_mask(mask);
  if (!(scalars >> bit & 1) || space_.digit(scalars, instance, bit) != 0) return false;
  const auto source = [&](size_t s, int n) -> const CValue& {
    return value(index.src(s).get(), mask, n);
  };
  const CValue& first = source(1, instance);
  const int n = space_.size(bit), stride = space_.stride(scalars, bit);
  if (n != first.step) return false;
  for (int j = 1; j < n; ++j) {
    const CValue& next = source(1, instance + j * stride);
    if (next.vector || next.base != first.base || next.step != first.step ||
        next.every != first.every || next.constant != first.constant + j)
      return false;
    if (index.src_count > 2 && source(2, instance + j * stride).base != source(2, instance).base)
      return false;
  }
  return true;
}

int CKernel::interleaved_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & vector_mask_) || index.dtype == DType::Bool) return -1;
  const CValue& first = value(index.src(1).get(), mask, instance);
  if (first.vector || first.step < 2 || first.step > kMostInterleaved || first.every > 1) return -1;
  for (int bit = 0; bit < space_.bits(); ++bit)
    if (is_interleaved(index, mask, instance, bit)) return bit;
  return -1;
}

// The contiguous vectors that hold all of them, and of these every n-th element.
void CKernel::load_interleaved(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = k_.lanes[i];
  const DType t = index.dtype;
  const CValue offset = value(index.src(1).get(), mask, first);
  const CValue* gate = index.src_count > 2 ? &value(index.src(2).get(), mask, first) : nullptr;
  if (gate && gate->base == "1") gate = nullptr;
  const int n = space_.size(bit);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    const CValue at{.base = offset.base, .constant = offset.constant + v * width_, .step = 1};
    CValue own = gate ? *gate : CValue{};
    if (gate && gate->varies()) {
      std::vector<int> lanes;
      for (int l = 0; l < width_; ++l) lanes.push_back((v * width_ + l) / n);
      const std::string all = vector(*gate, DType::Bool);
      own = CValue{.base = shuffled(all, all, DType::Bool, lanes), .vector = true};
    }
    loaded.push_back(load_contiguous(index, at, gate ? &own : nullptr).base);
  }
  const int stride = space_.stride(scalar_mask(mask), bit);
  for (int j = 0; j < n; ++j)
    values_[i][first + j * stride] = CValue{.base = every_nth(loaded, t, j), .vector = true};
}

std::string CKernel::every_nth(const std::vector<std::string>& vectors, DType t, int first) {
  const int n = static_cast<int>(vectors.size());
  std::string all = vectors[0];
  for (int v = 1; v < n; ++v) {
    std::vector<int> lanes;
    for (int l = 0; l < width_; ++l) {
      const int element = l * n + first;
      const bool begins = v == 1 && element < width_, here = element / width_ == v;
      lanes.push_back(begins ? element : here ? element % width_ + width_ : l);
    }
    all = shuffled(all, vectors[static_cast<size_t>(v)], t, lanes);
  }
  return all;
}

// A register read in place is enough where no store comes between the load and its last use;
// otherwise the load is a copy.
CValue CKernel::load_register(size_t i, const Node* reg, int instance) {
  const CValue& v = value(reg, k_.lanes[i], instance);
  if (!changes_before_last_use(i, reg)) return v;
  CValue copy = v;
  copy.base = define(held_type(*reg, v.vector), v.base);
  return copy;
}

bool CKernel::changes_before_last_use(size_t load, const Node* reg) const {
  size_t last = load;
  for (size_t i = load + 1; i < k_.ops.size(); ++i)
    for (const ir::UOp& s : k_.ops[i]->src())
      if (without_after(s.get()) == k_.ops[load].get()) last = i;
  for (size_t i = load + 1; i < last; ++i) {
    const Node& u = *k_.ops[i];
    if (u.op == Op::Range || u.op == Op::End) return true;
    if (u.op == Op::Store && without_after(u.src(0).get()) == reg) return true;
  }
  // Affine sums and bool constants hand a load's text on without a variable of their own.
  return is_int(reg->dtype) || reg->dtype == DType::Bool;
}

// To write, where the CPU has such an instruction; else it is prefetched as for a load.
void CKernel::emit_prefetch(size_t i) {
  const Node& index = *k_.ops[i]->src(0);
  line(fmt::format("__builtin_prefetch({}, {});", pointer(index, value(index.src(1).get(), 0, 0)),
                   k_.ops[i]->get<int64_t>()));
}

// ---- stores ---------------------------------------------------------------------------------

void CKernel::emit_store(size_t i) {
  const Node& u = *k_.ops[i];
  const Node* to = without_after(u.src(0).get());
  if (to->op == Op::Register) return store_register(i, to);
  if (u.src_count == 3)
    fail<Unsupported>("C renderer: a masked store; a Target of C has 8- and 16-bit elements");
  const LaneMask mask = k_.lanes[i];
  const int count = space_.count(scalar_mask(mask));
  for (int n = 0; n < count; ++n) store(*to, mask, n, value(u.src(1).get(), mask, n));
}

void CKernel::store_register(size_t i, const Node* reg) {
  const Node* source = k_.ops[i]->src(1).get();
  const LaneMask mask = scalar_mask(lanes_of(reg) | k_.lanes[i]);
  for (int n = 0; n < space_.count(mask); ++n) {
    const CValue& to = value(reg, mask, n);
    const CValue& v = value(source, mask, n);
    TUFF_CHECK(to.vector || !v.varies(), "kernel {}: a vector stored to a scalar register",
               k_.name);
    line(fmt::format("{} = {};", to.base,
                     to.vector ? vector(v, reg->dtype) : scalar(v, reg->dtype)));
  }
}

void CKernel::store(const Node& index, LaneMask mask, int instance, const CValue& v) {
  const DType t = index.dtype, offset_type = index.src(1)->dtype;
  const CValue& offset = value(index.src(1).get(), mask, instance);
  const CValue* gate = index.src_count > 2 ? &value(index.src(2).get(), mask, instance) : nullptr;
  if (gate && gate->base == "1") gate = nullptr;
  const bool lane_gate = gate && gate->varies();
  const std::string condition = gate && !lane_gate ? fmt::format("if ({}) ", gate->base) : "";
  const bool is_bool = t == DType::Bool;
  if (!offset.varies() && !lane_gate && !v.varies())
    return line(
        fmt::format("{}{} = {};", condition, element(index, offset, offset_type, 0), scalar(v, t)));
  if (offset.is_contiguous() && !lane_gate) {
    std::string text = vector(v, t);
    if (is_bool) text = fmt::format("__builtin_convertvector({} & 1, u8x{})", text, width_);
    if (!condition.empty() || k_.ops[current_]->arg != ir::Arg(ir::kStreaming))
      return line(fmt::format("{}*({}*)({}) = {};", condition, memory_type(t, width_),
                              pointer(index, offset), text));
    streams_ = true;
    return line(fmt::format("TUFF_STREAM({}, ({}), ({}));", type_of(t, width_), text,
                            pointer(index, offset)));
  }
  if (offset.is_contiguous()) {
    std::string text = vector(v, t);
    if (is_bool) text = fmt::format("__builtin_convertvector({} & 1, u8x{})", text, width_);
    return line(fmt::format("{}, {}, ({})({}));", masked("put", t, index, offset),
                            vector(*gate, DType::Bool), c_bits(t, width_), text));
  }
  if (is_strided(offset, t)) return store_strided(index, offset, gate, v);
  for (int l = 0; l < width_; ++l) {
    const std::string when =
        lane_gate ? fmt::format("if ({}) ", lane(*gate, DType::Bool, l)) : condition;
    const std::string item =
        is_bool && v.vector ? fmt::format("{} & 1", lane(v, t, l)) : lane(v, t, l);
    line(fmt::format("{}{} = {};", when, element(index, offset, offset_type, l), item));
  }
}

}  // namespace tuff::render
