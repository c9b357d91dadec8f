#include "render/c_packs.h"

#include <algorithm>
#include <set>

#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "render/c_ops.h"
#include "render/c_shuffles.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int kLeastPack = 4, kMostPack = 32;  // lanes

}  // namespace

// Whether instances of this op are worth a pack: scalars beside a kernel's vectors.
bool CPacks::is_worth_it(size_t i) const {
  const int count = static_cast<int>(b_.values[i].size());
  return b_.width > 1 && !(b_.kernel.lanes[i] & b_.vector_mask) && count >= kLeastPack &&
         count <= kMostPack && c_has_width(count) && b_.kernel.ops[i]->dtype != DType::Bool;
}

// Values that vectors are multiplied by as they are loaded stay in memory: instructions repeat an
// element for nothing.
bool CPacks::feeds_scalars_alone(size_t i) const {
  const std::vector<size_t> all = b_.users(i);
  return !all.empty() && std::ranges::all_of(all, [&](size_t at) {
    return ir::is_alu(b_.kernel.ops[at]->op) && !(b_.kernel.lanes[at] & b_.vector_mask);
  });
}

// Lanes that vectors repeat are loaded one by one: CPUs load and repeat in one step, at ports that
// have room, where a shuffle would take one that conversions need.
void CPacks::set(size_t i, const std::string& name) {
  packs_[i] = name;
  const bool repeated = !feeds_scalars_alone(i);
  const std::string elements = repeated ? fmt::format("m{}", i) : name;
  if (repeated) {
    const DType t = b_.kernel.ops[i]->dtype;
    const int count = static_cast<int>(b_.values[i].size());
    b_.line(fmt::format("{} {}[{}];", b_.type_of(t), elements, count));
    b_.line(fmt::format("*({}*){} = {};", b_.memory_type(t, count), elements, name));
    b_.line(fmt::format("TUFF_IN_MEMORY({});", elements));
    // Else clang loads neighbours together and takes them apart again.
    b_.line(fmt::format("TUFF_ZEROS(even{0}, odd{0});", i));
  }
  for (size_t n = 0; n < b_.values[i].size(); ++n)
    b_.values[i][n] =
        CValue{repeated ? fmt::format("{}[{} + {}{}]", elements, n, n % 2 ? "odd" : "even", i)
                        : fmt::format("{}[{}]", elements, n)};
}

// Neighbours in memory, or several runs of so many of them, in any order and behind no gates.
bool CPacks::load(size_t i, const Node& index) {
  if (!is_worth_it(i) || index.op != Op::Index || index.src_count > 2 || !feeds_scalars_alone(i))
    return false;
  const int count = static_cast<int>(b_.values[i].size());
  CAccess run = memory_.access(index, b_.kernel.lanes[i], 0);
  std::vector<int64_t> at, sorted;
  for (int n = 0; n < count; ++n) {
    const CValue offset = memory_.access(index, b_.kernel.lanes[i], n).offset;
    if (offset.base != run.offset.base || offset.varies()) return false;
    at.push_back(offset.constant);
  }
  sorted = at;
  std::ranges::sort(sorted);
  int length = 1;
  while (length < count && sorted[size_t(length)] == sorted[0] + length) ++length;
  if (length < kLeastPack || count % length != 0) return false;
  for (int n = 0; n < count; ++n)
    if (sorted[size_t(n)] != sorted[size_t(n - n % length)] + n % length) return false;
  std::vector<std::string> runs;
  for (int n = 0; n < count; n += length) {
    run.offset.constant = sorted[size_t(n)], run.offset.step = 1;
    runs.push_back(b_.define(b_.type_of(index.dtype, length), memory_.vector_at(run, length)));
  }
  const std::string all = joined(b_, std::move(runs), index.dtype, length);
  std::vector<int> lanes;
  for (const int64_t a : at) lanes.push_back(int(std::ranges::find(sorted, a) - sorted.begin()));
  set(i, std::ranges::is_sorted(lanes) ? all : shuffled(b_, all, all, index.dtype, lanes));
  return true;
}

// An operand of all instances as one vector; empty: it has none. `packed`: it is one already.
std::string CPacks::operand(size_t i, size_t source, bool& packed) {
  const Node* u = without_after(b_.kernel.ops[i]->src(source).get());
  const size_t from = b_.position(u);
  const int count = static_cast<int>(b_.values[i].size());
  const LaneMask own = b_.scalar_mask(b_.kernel.lanes[i]),
                 theirs = b_.scalar_mask(b_.kernel.lanes[from]);
  std::vector<int> lanes;
  for (int n = 0; n < count; ++n) lanes.push_back(b_.space.project(own, n, theirs));
  if (const auto pack = packs_.find(from); pack != packs_.end()) {
    packed = true;
    if (theirs == own) return pack->second;
    return shuffled(b_, pack->second, pack->second, u->dtype, lanes);
  }
  const std::vector<CValue>& x = b_.values[from];
  const bool uniform =
      std::ranges::all_of(lanes, [&](int l) { return x[size_t(l)] == x[size_t(lanes[0])]; });
  const bool choices = u->dtype == DType::Bool;
  const auto is_plain = [&](const CValue& v) {
    return choices ? v.base == "0" || v.base == "1" : v.is_number() && is_int(u->dtype);
  };
  const std::string type = b_.type_of(u->dtype, count);
  if (uniform && !x[size_t(lanes[0])].varies()) {
    const std::string text = b_.scalar(x[size_t(lanes[0])], u->dtype);
    return choices ? fmt::format("({})(-({}))", type, text) : fmt::format("({})({})", type, text);
  }
  // Numbers, or a few scalars that many lanes have.
  std::set<std::string> scalars;
  for (const int l : lanes) {
    if (x[size_t(l)].varies()) return {};
    if (!is_plain(x[size_t(l)])) scalars.insert(b_.scalar(x[size_t(l)], u->dtype));
  }
  if (int(scalars.size()) * kLeastPack > count) return {};
  std::string text = fmt::format("({}){{", type);
  for (int n = 0; n < count; ++n) {
    const CValue& v = x[size_t(lanes[size_t(n)])];
    text += fmt::format("{}{}{}", n ? ", " : "", choices ? "-" : "", b_.scalar(v, u->dtype));
  }
  return b_.define(type, text + "}");
}

// An op of packs is one instruction.
bool CPacks::alu(size_t i) {
  if (packs_.empty() || !is_worth_it(i)) return false;
  const Node& u = *b_.kernel.ops[i];
  const int count = static_cast<int>(b_.values[i].size());
  bool packed = false;
  std::vector<COperand> operands;
  for (size_t s = 0; s < u.src_count; ++s) {
    const std::string text = operand(i, s, packed);
    if (text.empty()) return false;
    operands.push_back({text, count});
  }
  if (!packed) return false;
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  set(i, b_.define(b_.type_of(u.dtype, count),
                   c_alu(b_.dialect, u.op, u.dtype, from, operands, count)));
  return true;
}

}  // namespace tuff::render
