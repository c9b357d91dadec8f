// Loads and stores of the C renderer: registers, contiguous vectors, single lanes, gates.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/contains.h"
#include "ir/walk.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int64_t kMostInterleaved = 4;  // vectors that are shuffled into one
constexpr int64_t kWidestLoadBytes = 16;

}  // namespace

std::string CKernel::pointer_name(const Node& index) const {
  const Node* buffer = without_after(index.src(0).get());
  if (buffer->op == Op::Shared) return fmt::format("s{}", buffer->get<ir::SharedArg>().number);
  const auto slot = static_cast<size_t>(buffer->get<ir::ParamArg>().slot);
  // Bytes that are read as words.
  if (k_.buffers[slot].dtype != buffer->dtype)
    return fmt::format("((TUFF_GLOBAL {}*)d{})", memory_type(buffer->dtype), slot);
  return fmt::format("d{}", slot);
}

// The constant stands outside the sum in 32 bits: it becomes the displacement of the instruction.
std::string CKernel::pointer(const CAccess& a) const {
  std::string text = pointer_name(a.index);
  if (!a.offset.base.empty()) text += " + " + a.offset.base;
  if (const int64_t c = a.offset.constant)
    text += fmt::format(" {} {}", c < 0 ? '-' : '+', std::abs(c));
  return text;
}

std::string CKernel::element(const CAccess& a, int l) const {
  const std::string name = pointer_name(a.index);
  if (a.offset.vector)
    return fmt::format("{}[{}]", name, lane(a.offset, a.index.src(1)->dtype, l));
  const int64_t constant = a.offset.at_lane(l);
  if (a.offset.base.empty()) return fmt::format("{}[{}]", name, constant);
  if (constant == 0) return fmt::format("{}[{}]", name, a.offset.base);
  return fmt::format("({} + {})[{}]", name, a.offset.base, constant);
}

// The call of a function of the prelude that moves the lanes of a mask, without its last arguments.
std::string CKernel::masked(const char* verb, const CAccess& a) const {
  const char* constness = verb[0] == 'g' ? "const " : "";
  return fmt::format("{}_{}(({}{}*)({})", verb, c_bits(a.dtype(), a.width), constness,
                     c_bits(a.dtype(), 1), pointer(a));
}

std::string CKernel::vector_at(const CAccess& a, int width) const {
  return fmt::format("*(const {}*)({})", memory_type(a.dtype(), width), pointer(a));
}

std::string CKernel::or_zero(const CAccess& a, const std::string& text) const {
  if (!a.whole_gate()) return text;
  return fmt::format("{} ? {} : {}", a.gate->base, text, zero(a.dtype(), a.width));
}

CAccess CKernel::access(const Node& index, LaneMask mask, int instance) const {
  CAccess a{index, value(index.src(1).get(), mask, instance), width_};
  if (index.src_count > 2) a.gate = &value(index.src(2).get(), mask, instance);
  if (a.gate && a.gate->base == "1") a.gate = nullptr;
  return a;
}

// ---- loads ----------------------------------------------------------------------------------

void CKernel::emit_load(size_t i) {
  const Node* from = without_after(k_.ops[i]->src(0).get());
  const LaneMask mask = k_.lanes[i];
  std::vector<CValue>& out = values_[i];
  out.resize(static_cast<size_t>(space_.count(scalar_mask(mask))));
  const bool gated = from->op == Op::Index && from->src_count > 2;
  if (dialect_.claims_alignment && from->op == Op::Index) claim_alignment(i, *from);
  const bool scalars = !dialect_.simd || !(mask & vector_mask_);
  if (gated && scalars && out.size() > 1) return load_behind_gates(i, *from);
  if (load_packed(i, *from)) return;
  for (int n = 0; n < static_cast<int>(out.size()); ++n) {
    if (!out[n].base.empty()) continue;  // loaded with an instance before it
    if (from->op == Op::Register) {
      out[n] = load_register(i, from, n);
    } else if (const int between = interleaved_bit(*from, mask, n); between >= 0) {
      load_interleaved(i, *from, n, between);
    } else if (const int across = transposed_bit(*from, mask, n); across >= 0) {
      load_transposed(i, *from, n, across);
    } else {
      out[n] = load(access(*from, mask, n));
    }
  }
}

// What the compiler cannot see where many operations lie between an index and its factors: how
// neighbours are aligned, as far as divisors prove it and loads are wide.
void CKernel::claim_alignment(size_t i, const Node& index) {
  const auto bytes = static_cast<int64_t>(size_bytes(index.dtype));
  std::map<std::string, std::pair<int, int64_t>> bases;  // how many loads, aligned to what
  for (int n = 0; n < static_cast<int>(values_[i].size()); ++n) {
    const CValue& offset = value(index.src(1).get(), k_.lanes[i], n);
    if (offset.base.empty()) continue;
    const int64_t aligned = std::min(offset.divisor * bytes, kWidestLoadBytes);
    ++bases.try_emplace(offset.base, 0, aligned).first->second.first;
  }
  for (const auto& [base, known] : bases)
    if (known.first > 1 && known.second > bytes)
      line(fmt::format("TUFF_ALIGNED({} + {}, {});", pointer_name(index), base, known.second));
}

// How far apart in memory the lanes of a bit are from this instance on; 0: not the same distance.
int64_t CKernel::step_along(const Node& index, LaneMask mask, int instance, int bit) const {
  const LaneMask scalars = scalar_mask(mask);
  if (!(scalars >> bit & 1) || space_.digit(scalars, instance, bit) != 0) return 0;
  const CValue first = access(index, mask, instance).offset;
  const int stride = space_.stride(scalars, bit);
  const int64_t step = access(index, mask, instance + stride).offset.constant - first.constant;
  for (int j = 1; j < space_.size(bit); ++j) {
    CValue wanted = first;
    wanted.constant += j * step;
    if (!(access(index, mask, instance + j * stride).offset == wanted)) return 0;
  }
  return step;
}

// Where the vector's lanes walk memory with a stride and some other lanes, of a number that divides
// theirs, walk it step by step or with a short stride: the bit of those. Vectors are loaded along
// them and transposed in registers. Gates may depend on those, as at the edges of an image.
int CKernel::transposed_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & vector_mask_) || index.dtype == DType::Bool) return -1;
  const CValue& first = value(index.src(1).get(), mask, instance);
  if (first.vector || first.step == 0 || first.step == 1 || first.every > 1 || width_ < 4)
    return -1;
  for (int bit = 0; bit < space_.bits(); ++bit) {
    const int n = space_.size(bit);
    if (n < 4 || width_ % n != 0 || !std::has_single_bit(unsigned(n))) continue;
    const int64_t step = step_along(index, mask, instance, bit);
    const CAccess row{index, {.step = step}, n};
    if (step != 1 && !is_strided(row)) continue;
    const int stride = space_.stride(scalar_mask(mask), bit);
    bool lane_gates = false;
    for (int j = 0; j < n; ++j)
      lane_gates = lane_gates || access(index, mask, instance + j * stride).lane_gate();
    if (!lane_gates) return bit;
  }
  return -1;
}

void CKernel::load_transposed(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = k_.lanes[i];
  const int n = space_.size(bit), stride = space_.stride(scalar_mask(mask), bit);
  const CAccess a = access(index, mask, first);
  const CValue gates = gates_along(index, mask, first, bit);
  CAccess row{index, a.offset, n, gates.vector ? &gates : nullptr};
  row.offset.step = step_along(index, mask, first, bit);
  // Each of width_ / n parts.
  std::vector<std::vector<std::string>> columns(static_cast<size_t>(n));
  for (int block = 0; block < width_; block += n) {
    std::vector<std::string> rows;
    for (int l = block; l < block + n; ++l) {
      row.offset.constant = a.offset.constant + a.offset.step * l;
      rows.push_back((row.offset.step == 1 ? load_contiguous(row) : load_strided(row)).base);
    }
    rows = transposed(std::move(rows), index.dtype);
    for (int j = 0; j < n; ++j) columns[j].push_back(rows[j]);
  }
  for (int j = 0; j < n; ++j)
    values_[i][first + j * stride] =
        CValue{.base = joined(std::move(columns[j]), index.dtype, n), .vector = true};
}

// Whether the lanes of a bit are loaded behind one gate, or all behind none.
bool CKernel::share_gate(const Node& index, LaneMask mask, int instance, int bit) const {
  const CValue* gate = access(index, mask, instance).gate;
  const int stride = space_.stride(scalar_mask(mask), bit);
  for (int j = 1; j < space_.size(bit); ++j) {
    const CValue* next = access(index, mask, instance + j * stride).gate;
    if (gate ? !next || next->base != gate->base : next != nullptr) return false;
  }
  return true;
}

// The gates of a bit's lanes as one mask; no vector where there are none.
CValue CKernel::gates_along(const Node& index, LaneMask mask, int instance, int bit) {
  const int n = space_.size(bit), stride = space_.stride(scalar_mask(mask), bit);
  bool gated = false;
  std::string lanes;
  for (int j = 0; j < n; ++j) {
    const CValue* gate = access(index, mask, instance + j * stride).gate;
    gated = gated || gate;
    lanes += fmt::format("{}{}", j ? ", " : "", gate ? fmt::format("-({})", gate->base) : "-1");
  }
  if (!gated) return {};
  const std::string type = type_of(DType::Bool, n);
  return {.base = define(type, fmt::format("({}){{{}}}", type, lanes)), .vector = true};
}

// Vectors of `n` lanes side by side as one.
std::string CKernel::joined(std::vector<std::string> parts, DType t, int n) {
  for (; parts.size() > 1; n *= 2) {
    std::vector<int> lanes(static_cast<size_t>(2 * n));
    std::iota(lanes.begin(), lanes.end(), 0);
    std::vector<std::string> next;
    for (size_t p = 0; p < parts.size(); p += 2)
      next.push_back(shuffled(parts[p], parts[p + 1], t, lanes));
    parts = std::move(next);
  }
  return parts[0];
}

// log2(n) rounds; each interleaves the first half of the vectors with the second, so that an
// element's lane and vector numbers, taken as one, turn by one bit.
std::vector<std::string> CKernel::transposed(std::vector<std::string> rows, DType t) {
  const int n = static_cast<int>(rows.size()), half = n / 2;
  std::vector<int> low, high;
  for (int l = 0; l < half; ++l) {
    low.insert(low.end(), {l, l + n});
    high.insert(high.end(), {l + half, l + half + n});
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<std::string> next;
    for (int v = 0; v < half; ++v)
      for (const std::vector<int>& lanes : {low, high})
        next.push_back(shuffled(rows[v], rows[v + half], t, lanes));
    rows = std::move(next);
  }
  return rows;
}

CValue CKernel::load(const CAccess& a) {
  const DType t = a.dtype();
  const bool is_bool = t == DType::Bool;
  if (!a.offset.varies() && !a.lane_gate()) {
    std::string text = element(a, 0);
    if (is_bool) text = fmt::format("({} != 0)", text);
    return {define(type_of(t), a.gate ? fmt::format("{} ? {} : 0", a.gate->base, text) : text)};
  }
  if (a.offset.is_contiguous()) return load_contiguous(a);
  if (a.offset.step == 1 && a.offset.every < width_ && !is_bool && !a.whole_gate())
    return load_repeated(a);
  if (is_strided(a)) return load_strided(a);
  if (is_gathered(a)) return load_gathered(a);
  const std::string type = type_of(t, width_);
  std::string text = fmt::format("({}){{", type);
  for (int l = 0; l < width_; ++l) {
    std::string item = element(a, l);
    if (is_bool) item = fmt::format("-({} != 0)", item);
    if (a.gate) item = fmt::format("{} ? {} : 0", lane(*a.gate, DType::Bool, l), item);
    text += (l ? ", " : "") + item;
  }
  return CValue{.base = define(type, text + "}"), .vector = true};
}

// Where these are no vectors, what has one gate is loaded behind one branch, so that the compiler
// sees neighbours; on a CPU all of them behind a branch for all gates, as inside an image's edges
// (the lanes of a GPU's subgroup would take both sides). Each element once.
void CKernel::load_behind_gates(size_t i, const Node& index) {
  const LaneMask mask = k_.lanes[i];
  struct Gated {
    std::string gate;
    std::vector<std::pair<std::string, std::string>> loads;  // element, variable
  };
  std::vector<Gated> all;
  for (size_t n = 0; n < values_[i].size(); ++n) {
    const std::string& gate = value(index.src(2).get(), mask, static_cast<int>(n)).base;
    auto group = std::ranges::find(all, gate, &Gated::gate);
    if (group == all.end()) group = all.insert(group, {gate, {}});
    const std::string text = element(access(index, mask, static_cast<int>(n)), 0);
    auto known = std::ranges::find(group->loads, text, [](const auto& load) { return load.first; });
    if (known == group->loads.end())
      known = group->loads.insert(known, {text, fmt::format("v{}_{}", i, variables_++)});
    values_[i][n] = CValue{known->second};
  }
  const auto declare = [&](const Gated& g) {
    for (const auto& load : g.loads)
      line(fmt::format("{} {} = 0;", type_of(index.dtype), load.second));
  };
  const auto assign = [&](const Gated& g) {
    ++indent_;
    for (const auto& [text, variable] : g.loads)
      line(fmt::format("{} = {}{};", variable, text, index.dtype == DType::Bool ? " != 0" : ""));
    --indent_;
  };
  const bool together = dialect_.simd && all.size() > 1;
  if (together) {
    std::string every;
    for (const Gated& g : all) {
      declare(g);
      every += (every.empty() ? "" : " & ") + g.gate;
    }
    line(fmt::format("if ({}) {{", every));
    for (const Gated& g : all) assign(g);
    line("} else {");
  }
  for (const Gated& g : all) {
    if (!together) declare(g);
    line(fmt::format("if ({}) {{", g.gate));
    assign(g);
    line("}");
  }
  if (together) line("}");
}

CValue CKernel::load_contiguous(const CAccess& a) {
  const DType t = a.dtype();
  const std::string type = type_of(t, a.width);
  std::string text =
      a.lane_gate() ? fmt::format("{}, {})", masked("get", a), vector(*a.gate, DType::Bool))
                    : vector_at(a, a.width);
  if (t == DType::Bool)
    text = fmt::format("__builtin_convertvector({} != 0, {})", text, type);
  else if (a.lane_gate())
    text = fmt::format("({}){}", type, text);
  return CValue{.base = define(type, or_zero(a, text)), .vector = true};
}

// Elements anywhere, of those lanes whose gates are open: one instruction where the CPU has it,
// instead of a branch for each lane.
bool CKernel::is_gathered(const CAccess& a) const {
  return dialect_.simd && a.offset.vector && a.lane_gate() && size_bytes(a.dtype()) == 4 &&
         a.index.src(1)->dtype == DType::I32 && a.width % 8 == 0;
}

CValue CKernel::load_gathered(const CAccess& a) {
  const DType t = a.dtype();
  const std::string type = type_of(t, a.width);
  return {.base = define(type, fmt::format("({})gather_{}((const {}*)({}), {}, {})", type,
                                           c_bits(t, a.width), c_bits(t, 1), pointer_name(a.index),
                                           a.offset.base, vector(*a.gate, DType::Bool))),
          .vector = true};
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
CValue CKernel::load_repeated(const CAccess& a) {
  const DType t = a.dtype();
  const int n = static_cast<int>(a.offset.every), count = width_ / n;
  std::string text;
  if (a.gate) {
    const std::string lanes = vector(*a.gate, DType::Bool);
    std::string any;
    for (int j = 0; j < n; ++j) {
      std::vector<int> own;
      for (int l = 0; l < count; ++l) own.push_back(l * n + j);
      const std::string some = shuffled(lanes, lanes, DType::Bool, own);
      any = any.empty() ? some : define(type_of(DType::Bool, count), any + " | " + some);
    }
    text = fmt::format("({})get_{}((const {}*)({}), {})", type_of(t, count), c_bits(t, count),
                       c_bits(t, 1), pointer(a), any);
  } else {
    text = vector_at(a, count);
  }
  const std::string loaded = define(type_of(t, count), text);
  std::vector<int> repeated;
  for (int l = 0; l < width_; ++l) repeated.push_back(l / n);
  const std::string all = shuffled(loaded, loaded, t, repeated);
  if (!a.gate) return CValue{.base = all, .vector = true};
  const COperand operands[3] = {
      {vector(*a.gate, DType::Bool), width_}, {all, width_}, {zero(t, width_), width_}};
  return CValue{
      .base = define(type_of(t, width_), c_alu(dialect_, Op::Where, t, t, operands, width_)),
      .vector = true};
}

// ---- vectors of every n-th element ----------------------------------------------------------

// Masked loads of 32 bits are one instruction each; of other sizes only on some machines.
bool CKernel::is_strided(const CAccess& a) const {
  return dialect_.simd && !a.offset.vector && a.offset.every == 1 && a.offset.step > 1 &&
         a.offset.step <= kMostInterleaved && size_bytes(a.dtype()) == 4 && a.width % 8 == 0;
}

// The mask of vector v of the n contiguous ones that hold every n-th element: what lies between
// these is neither loaded nor stored.
std::string CKernel::every_nth_of_vector(int v, int n, const CAccess& a) {
  std::vector<int> lanes;
  std::string constant;
  for (int l = 0; l < a.width; ++l) {
    const int element = v * a.width + l;
    const bool wanted = element % n == 0;
    lanes.push_back(wanted ? element / n : a.width);
    constant += fmt::format("{}{}", l ? ", " : "", wanted ? -1 : 0);
  }
  if (!a.lane_gate()) return fmt::format("({}){{{}}}", type_of(DType::Bool, a.width), constant);
  return shuffled(vector(*a.gate, DType::Bool), zero(DType::Bool, a.width), DType::Bool, lanes);
}

CValue CKernel::load_strided(const CAccess& a) {
  const int n = static_cast<int>(a.offset.step);
  const std::string type = type_of(a.dtype(), a.width);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    const std::string mask = every_nth_of_vector(v, n, a);
    const std::string text =
        fmt::format("({}){}, {})", type, masked("get", a.at(v * a.width, 1)), mask);
    loaded.push_back(define(type, or_zero(a, text)));
  }
  return CValue{.base = every_nth(loaded, a.dtype(), 0, a.width), .vector = true};
}

void CKernel::store_strided(const CAccess& a, const CValue& v) {
  const DType t = a.dtype();
  const int n = static_cast<int>(a.offset.step);
  const std::string all = vector(v, t);
  for (int part = 0; part < n; ++part) {
    const std::string own = shuffled(all, all, t, interleaved_lanes(part, n));
    const std::string mask = every_nth_of_vector(part, n, a);
    line(fmt::format("{}{}, {}, ({})({}));",
                     a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "",
                     masked("put", a.at(part * width_, 1)), mask, c_bits(t, width_), own));
  }
}

// n vectors lie interleaved in memory: which of their lanes the v-th vector there has.
std::vector<int> CKernel::interleaved_lanes(int v, int n) const {
  std::vector<int> lanes;
  for (int l = 0; l < width_; ++l) lanes.push_back((v * width_ + l) / n);
  return lanes;
}

// The bit whose lanes walk one by one what lies between the elements of the vector's lanes.
int CKernel::interleaved_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & vector_mask_) || index.dtype == DType::Bool) return -1;
  const CValue& first = value(index.src(1).get(), mask, instance);
  if (first.vector || first.step < 2 || first.step > kMostInterleaved || first.every > 1) return -1;
  for (int bit = 0; bit < space_.bits(); ++bit)
    if (space_.size(bit) == first.step && step_along(index, mask, instance, bit) == 1 &&
        share_gate(index, mask, instance, bit))
      return bit;
  return -1;
}

// The contiguous vectors that hold all of them, and of these every n-th element.
void CKernel::load_interleaved(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = k_.lanes[i];
  const CAccess a = access(index, mask, first);
  const int n = space_.size(bit);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    CValue gate;
    loaded.push_back(load_contiguous(interleaved_part(a, v, n, gate)).base);
  }
  const int stride = space_.stride(scalar_mask(mask), bit);
  for (int j = 0; j < n; ++j)
    values_[i][first + j * stride] =
        CValue{.base = every_nth(loaded, index.dtype, j, width_), .vector = true};
}

// The v-th of n contiguous vectors that lie interleaved from a on; its lanes' gates go to `gate`.
CAccess CKernel::interleaved_part(const CAccess& a, int v, int n, CValue& gate) {
  CAccess part = a.at(v * width_, 1);
  if (!a.lane_gate()) return part;
  const std::string all = vector(*a.gate, DType::Bool);
  gate = {.base = shuffled(all, all, DType::Bool, interleaved_lanes(v, n)), .vector = true};
  part.gate = &gate;
  return part;
}

std::string CKernel::every_nth(const std::vector<std::string>& vectors, DType t, int first,
                               int width) {
  const int n = static_cast<int>(vectors.size());
  std::string all = vectors[0];
  for (int v = 1; v < n; ++v) {
    std::vector<int> lanes;
    for (int l = 0; l < width; ++l) {
      const int element = l * n + first;
      const bool begins = v == 1 && element < width, here = element / width == v;
      lanes.push_back(begins ? element : here ? element % width + width : l);
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
  line(fmt::format("__builtin_prefetch({}, {});", pointer(access(index, 0, 0)),
                   k_.ops[i]->get<int64_t>()));
}

// ---- stores ---------------------------------------------------------------------------------

void CKernel::emit_store(size_t i) {
  const Node& u = *k_.ops[i];
  const Node* to = without_after(u.src(0).get());
  if (to->op == Op::Register) {
    store_register(i, to);
    block_ = out_.size();
    return;
  }
  if (u.src_count == 3)
    fail<Unsupported>("C renderer: a masked store; a Target of C has 8- and 16-bit elements");
  const LaneMask mask = k_.lanes[i];
  const int count = space_.count(scalar_mask(mask));
  std::vector<bool> stored(static_cast<size_t>(count));  // with an instance before it
  for (int n = 0; n < count; ++n) {
    if (stored[n]) continue;
    if (const auto* arg = std::get_if<ir::ReduceArg>(&u.arg)) {
      TUFF_CHECK(!dialect_.simd, "kernel {}: an atomic store of SIMD lanes", k_.name);
      combine(access(*to, mask, n), value(u.src(1).get(), mask, n), arg->op, u.src(1)->dtype);
      continue;
    }
    const int between = interleaved_bit(*to, mask, n);
    if (between < 0) {
      store(access(*to, mask, n), value(u.src(1).get(), mask, n));
      continue;
    }
    store_interleaved(i, *to, n, between);
    for (int j = 0; j < space_.size(between); ++j)
      stored[n + j * space_.stride(scalar_mask(mask), between)] = true;
  }
  block_ = out_.size();
}

// The vectors of a bit's lanes, of which each has every n-th element of memory, as whole ones.
void CKernel::store_interleaved(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = k_.lanes[i];
  const CAccess a = access(index, mask, first);
  const int n = space_.size(bit), stride = space_.stride(scalar_mask(mask), bit);
  std::vector<std::string> values;
  for (int j = 0; j < n; ++j)
    values.push_back(vector(value(k_.ops[i]->src(1).get(), mask, first + j * stride), index.dtype));
  for (int v = 0; v < n; ++v) {
    std::string own = values[0];
    for (int j = 1; j < n; ++j) {
      std::vector<int> lanes;
      for (int l = 0; l < width_; ++l) {
        const int element = v * width_ + l, from = element % n;
        lanes.push_back(from == j             ? width_ + element / n
                        : j == 1 && from == 0 ? element / n
                                              : l);
      }
      own = shuffled(own, values[static_cast<size_t>(j)], index.dtype, lanes);
    }
    CValue gate;
    store(interleaved_part(a, v, n, gate), CValue{.base = own, .vector = true});
  }
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

// Of a dialect without SIMD lanes: one element, or the word of a float.
void CKernel::combine(const CAccess& a, const CValue& v, Op op, DType t) {
  const std::string condition = a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "";
  const std::string place = pointer(a), x = scalar(v, t);
  if (t == a.dtype()) {
    const char* what = op == Op::Add ? "ADD" : "MAX";
    return line(fmt::format("{}TUFF_ATOMIC_{}({}, {});", condition, what, place, x));
  }
  const COperand operands[2] = {{"old", 1}, {x, 1}};
  line(fmt::format("{}TUFF_EXCHANGE_UNTIL({}, {}, {});", condition, type_of(t), place,
                   c_alu(dialect_, op, t, t, operands, 1)));
}

void CKernel::store(const CAccess& a, const CValue& v) {
  const DType t = a.dtype();
  const bool is_bool = t == DType::Bool;
  const std::string condition = a.whole_gate() ? fmt::format("if ({}) ", a.gate->base) : "";
  if (!a.offset.varies() && !a.lane_gate() && !v.varies())
    return line(fmt::format("{}{} = {};", condition, element(a, 0), scalar(v, t)));
  if (a.offset.is_contiguous()) {
    std::string text = vector(v, t);
    if (is_bool) text = fmt::format("__builtin_convertvector({} & 1, u8x{})", text, width_);
    if (a.lane_gate())
      return line(fmt::format("{}, {}, ({})({}));", masked("put", a), vector(*a.gate, DType::Bool),
                              c_bits(t, width_), text));
    if (a.gate || k_.ops[current_]->arg != ir::Arg(ir::kStreaming))
      return line(fmt::format("{}*({}*)({}) = {};", condition, memory_type(t, width_), pointer(a),
                              text));
    streams_ = true;
    return line(
        fmt::format("TUFF_STREAM({}, ({}), ({}));", type_of(t, width_), text, pointer(a)));
  }
  if (is_strided(a)) return store_strided(a, v);
  for (int l = 0; l < width_; ++l) {
    const std::string when =
        a.lane_gate() ? fmt::format("if ({}) ", lane(*a.gate, DType::Bool, l)) : condition;
    const std::string item =
        is_bool && v.vector ? fmt::format("{} & 1", lane(v, t, l)) : lane(v, t, l);
    line(fmt::format("{}{} = {};", when, element(a, l), item));
  }
}

}  // namespace tuff::render
