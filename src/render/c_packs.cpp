// Packs: the scalar instances of an op as one vector. What vectors share, as the scales of a block's
// groups, is decoded for all groups by one instruction, and each vector takes its lane of it.
#include <algorithm>
#include <set>

#include "ir/kernel_floor.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int kLeastPack = 4, kMostPack = 32;  // lanes

}  // namespace

// Whether instances of this op are worth a pack: scalars beside a kernel's vectors.
bool CKernel::may_pack(size_t i) const {
  const int count = static_cast<int>(values_[i].size());
  return width_ > 1 && !(k_.lanes[i] & vector_mask_) && count >= kLeastPack &&
         count <= kMostPack && c_has_width(count) && k_.ops[i]->dtype != DType::Bool;
}

std::vector<size_t> CKernel::users(size_t i) const {
  std::vector<size_t> out;
  for (size_t at = i + 1; at < k_.ops.size(); ++at)
    if (std::ranges::any_of(k_.ops[at]->src(), [&](const ir::UOp& s) {
          return without_after(s.get()) == k_.ops[i].get();
        }))
      out.push_back(at);
  return out;
}

// Values that vectors are multiplied by as they are loaded stay in memory: instructions repeat an
// element for nothing.
bool CKernel::feeds_scalars_alone(size_t i) const {
  const std::vector<size_t> all = users(i);
  return !all.empty() && std::ranges::all_of(all, [&](size_t at) {
    return ir::is_alu(k_.ops[at]->op) && !(k_.lanes[at] & vector_mask_);
  });
}

// Lanes that vectors repeat are loaded one by one: CPUs load and repeat in one step, at ports that
// have room, where a shuffle would take one that conversions need.
void CKernel::set_pack(size_t i, const std::string& name) {
  packs_[i] = name;
  const bool repeated = !feeds_scalars_alone(i);
  const std::string elements = repeated ? fmt::format("m{}", i) : name;
  if (repeated) {
    const DType t = k_.ops[i]->dtype;
    const int count = static_cast<int>(values_[i].size());
    line(fmt::format("{} {}[{}];", type_of(t), elements, count));
    line(fmt::format("*({}*){} = {};", memory_type(t, count), elements, name));
    line(fmt::format("TUFF_IN_MEMORY({});", elements));
    // Else clang loads neighbours together and takes them apart again.
    line(fmt::format("TUFF_ZEROS(even{0}, odd{0});", i));
  }
  for (size_t n = 0; n < values_[i].size(); ++n)
    values_[i][n] = CValue{repeated ? fmt::format("{}[{} + {}{}]", elements, n,
                                                  n % 2 ? "odd" : "even", i)
                                    : fmt::format("{}[{}]", elements, n)};
}

// Neighbours in memory, or several runs of so many of them, in any order and behind no gates.
bool CKernel::load_packed(size_t i, const Node& index) {
  if (!may_pack(i) || index.op != Op::Index || index.src_count > 2 || !feeds_scalars_alone(i))
    return false;
  const int count = static_cast<int>(values_[i].size());
  CAccess run = access(index, k_.lanes[i], 0);
  std::vector<int64_t> at, sorted;
  for (int n = 0; n < count; ++n) {
    const CValue offset = access(index, k_.lanes[i], n).offset;
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
    runs.push_back(define(type_of(index.dtype, length), vector_at(run, length)));
  }
  const std::string all = joined(std::move(runs), index.dtype, length);
  std::vector<int> lanes;
  for (const int64_t a : at) lanes.push_back(int(std::ranges::find(sorted, a) - sorted.begin()));
  set_pack(i, std::ranges::is_sorted(lanes) ? all : shuffled(all, all, index.dtype, lanes));
  return true;
}

// An operand of all instances as one vector; empty: it has none. `packed`: it is one already.
std::string CKernel::packed_operand(size_t i, size_t source, bool& packed) {
  const Node* u = without_after(k_.ops[i]->src(source).get());
  const size_t from = position(u);
  const int count = static_cast<int>(values_[i].size());
  const LaneMask own = scalar_mask(k_.lanes[i]), theirs = scalar_mask(k_.lanes[from]);
  std::vector<int> lanes;
  for (int n = 0; n < count; ++n) lanes.push_back(space_.project(own, n, theirs));
  if (const auto pack = packs_.find(from); pack != packs_.end()) {
    packed = true;
    if (theirs == own) return pack->second;
    return shuffled(pack->second, pack->second, u->dtype, lanes);
  }
  const std::vector<CValue>& x = values_[from];
  const bool uniform =
      std::ranges::all_of(lanes, [&](int l) { return x[size_t(l)] == x[size_t(lanes[0])]; });
  const bool choices = u->dtype == DType::Bool;
  const auto is_plain = [&](const CValue& v) {
    return choices ? v.base == "0" || v.base == "1" : v.is_number() && is_int(u->dtype);
  };
  const std::string type = type_of(u->dtype, count);
  if (uniform && !x[size_t(lanes[0])].varies()) {
    const std::string text = scalar(x[size_t(lanes[0])], u->dtype);
    return choices ? fmt::format("({})(-({}))", type, text) : fmt::format("({})({})", type, text);
  }
  // Numbers, or a few scalars that many lanes have.
  std::set<std::string> scalars;
  for (const int l : lanes) {
    if (x[size_t(l)].varies()) return {};
    if (!is_plain(x[size_t(l)])) scalars.insert(scalar(x[size_t(l)], u->dtype));
  }
  if (int(scalars.size()) * kLeastPack > count) return {};
  std::string text = fmt::format("({}){{", type);
  for (int n = 0; n < count; ++n) {
    const CValue& v = x[size_t(lanes[size_t(n)])];
    text += fmt::format("{}{}{}", n ? ", " : "", choices ? "-" : "", scalar(v, u->dtype));
  }
  return define(type, text + "}");
}

// An op of packs is one instruction.
bool CKernel::alu_packed(size_t i) {
  if (packs_.empty() || !may_pack(i)) return false;
  const Node& u = *k_.ops[i];
  const int count = static_cast<int>(values_[i].size());
  bool packed = false;
  std::vector<COperand> operands;
  for (size_t s = 0; s < u.src_count; ++s) {
    const std::string text = packed_operand(i, s, packed);
    if (text.empty()) return false;
    operands.push_back({text, count});
  }
  if (!packed) return false;
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  set_pack(i, define(type_of(u.dtype, count), c_alu(dialect_, u.op, u.dtype, from, operands, count)));
  return true;
}

}  // namespace tuff::render
