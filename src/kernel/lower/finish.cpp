// The facts about a linear list that renderers and the engine read: lane masks, arguments, work
// estimate, name.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/op_counts.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

void fill_lanes(LinearKernel& k) {
  std::unordered_map<const Node*, LaneMask> mask;
  for (const UOp& u : k.ops) {
    LaneMask m = 0;
    // What an After is ordered after gives it no lanes.
    for (const UOp& s : u->op == Op::After ? u->src().first(1) : u->src()) {
      if (const auto it = mask.find(s.get()); it != mask.end()) m |= it->second;
    }
    if (u->op == Op::Range && is_lane(kind_of(u.get()))) {
      TUFF_CHECK(k.lane_ranges.size() < 32, "more than 32 lane ranges");
      m = LaneMask(1) << k.lane_ranges.size();
      k.lane_ranges.push_back(u);
    } else if (u->op == Op::Range || u->op == Op::End || u->op == Op::Barrier) {
      m = 0;
    } else if (u->op == Op::Reduce || u->op == Op::Dot) {
      for (const UOp& r : u->op == Op::Dot ? dot_lanes(u.get()) : closed_ranges(u.get())) {
        TUFF_CHECK(m & mask.at(r.get()), "a value is folded over a lane that it has not");
        m &= ~mask.at(r.get());
      }
    }
    mask[u.get()] = m;
    k.lanes.push_back(m);
  }
}

void fill_arguments(LinearKernel& k) {
  std::map<int32_t, LinearKernel::Argument> by_slot;
  for (const UOp& u : k.ops) {
    if (u->op == Op::Param) {
      const ParamArg& p = u->get<ParamArg>();
      const LinearKernel::Argument a{p.slot, u->dtype, p.count, false, false};
      const auto [it, fresh] = by_slot.emplace(p.slot, a);
      // Bytes that are read as words, too.
      if (!fresh && size_bytes(a.dtype) < size_bytes(it->second.dtype))
        it->second.dtype = a.dtype, it->second.count = a.count;
    }
    if (u->op == Op::Variable) k.variables.push_back(u);
    if (u->op == Op::Shared)
      k.shared_bytes += uint32_t(
          align_up(uint64_t(u->get<SharedArg>().count) * size_bytes(u->dtype), kSharedAlignment));
    const bool loads = u->op == Op::Load || u->op == Op::MatrixLoad;
    const bool stores = u->op == Op::Store || u->op == Op::MatrixStore;
    if ((!loads && !stores) || u->src(0)->op != Op::Index) continue;
    const Node* memory = without_after(u->src(0)->src(0).get());
    if (memory->op != Op::Param) continue;
    LinearKernel::Argument& a = by_slot.at(memory->get<ParamArg>().slot);
    (loads ? a.read : a.written) = true;
  }
  int32_t next = 0;
  for (auto& [slot, a] : by_slot) {
    // A buffer whose reads folded away keeps its place in the argument block.
    for (; next < slot; next++) k.buffers.push_back({next, DType::U32, 0, false, false});
    k.buffers.push_back(a);
    next = slot + 1;
  }
  std::ranges::sort(k.variables, {}, [](const UOp& v) { return v->get<VariableArg>().name; });
}

// Elements that differ, at most: an offset has as many values as what it is made of. Gates say which
// invocation has an element, and make it no more.
uint64_t distinct_elements(const Node* index) {
  constexpr uint64_t kMost = uint64_t(1) << 40;
  uint64_t n = 1;
  for (const Node* x : toposort(index->src(1))) {
    if (x->op != Op::Range && x->op != Op::Special) continue;
    n = std::min(n * uint64_t(std::max<int64_t>(x->src(0)->max, 1)), kMost);
  }
  return n;
}

void estimate(LinearKernel& k) {
  uint64_t invocations = 1;
  const uint64_t together = std::max(k.subgroup_size, 1u);  // that multiply a matrix
  for (int i = 0; i < 3; i++) invocations *= uint64_t(k.groups[i].max()) * k.local[i];
  std::map<int32_t, uint64_t> touched;  // bytes accessed per slot
  const auto touch = [&](const Node* memory, uint64_t bytes) {
    if (memory->op == Op::Param) touched[memory->get<ParamArg>().slot] += bytes;
  };
  for_each_op(k, [&](size_t i, uint64_t times) {
    const UOp& u = k.ops[i];
    const uint64_t n = invocations * times * uint64_t(lane_count(k, k.lanes[i]));
    if (u->op == Op::Reduce) {
      uint64_t folded = 1;
      for (const UOp& r : u->src().subspan(1)) folded *= uint64_t(r->src(0)->max);
      k.estimate.flops += n * (folded - 1);
    } else if (u->op == Op::Dot) {
      k.estimate.flops += 2 * n * uint64_t(extent(dot_lanes(u.get())));
    } else if (is_alu(u->op) && is_float(u->dtype) && u->op != Op::Cast && u->op != Op::Where) {
      k.estimate.flops += n * (u->op == Op::MulAdd ? 2 : 1);
    } else if (u->op == Op::MatrixMulAdd) {
      const MatrixArg &a = *matrix_of(u->src(0).get()), &sum = u->get<MatrixArg>();
      k.estimate.flops += n / together * 2 * uint64_t(sum.rows) * sum.columns * a.columns;
    } else if (u->op == Op::MatrixLoad) {
      const MatrixArg& a = u->get<MatrixArg>();
      touch(without_after(u->src(0)->src(0).get()),
            n / together * uint64_t(a.rows) * a.columns * size_bytes(u->dtype));
    } else if (const Node* m = accessed_memory(u.get())) {
      touch(m, std::min(n, distinct_elements(u->src(0).get())) * size_bytes(m->dtype));
    }
  });
  for (const LinearKernel::Argument& a : k.buffers) {
    const uint64_t whole = uint64_t(a.count) * size_bytes(a.dtype);
    const uint64_t once = std::min(whole, touched[a.slot]);
    k.estimate.bytes += once * ((a.read ? 1 : 0) + (a.written ? 1 : 0));
  }
}

// "r_64_32_16x4_1a2b3c4d": reduction or element-wise, launch, loops, lanes, and the AST's key,
// which tells apart what looks alike.
std::string kernel_name(const LinearKernel& k, uint64_t key) {
  bool reduces = false;
  std::string name;
  auto part = [&](const std::string& prefix, int64_t n) {
    name += fmt::format("_{}{}", prefix, n);
  };
  for (int i = 2; i >= 0; i--) {
    if (!(k.groups[i] == 1)) part("g", k.groups[i].max());
  }
  for (int i = 2; i >= 0; i--) {
    if (k.local[i] != 1) part("l", k.local[i]);
  }
  for (const UOp& u : k.ops) {
    if (u->op == Op::Register || u->op == Op::Reduce || u->op == Op::Barrier) reduces = true;
    if (u->op == Op::Range && is_loop(kind_of(u.get()))) part("", u->src(0)->max);
  }
  std::string lanes;
  for (const UOp& r : k.lane_ranges)
    lanes += fmt::format("{}{}", lanes.empty() ? "_" : "x", r->src(0)->max);
  return fmt::format("{}{}{}_{:08x}", reduces ? "r" : "e", name, lanes, uint32_t(key ^ key >> 32));
}

}  // namespace

void pass_finish(Lowering& l) {
  LinearKernel& k = l.out;
  fill_lanes(k);
  fill_arguments(k);
  if (k.shared_bytes > l.target.shared_bytes) {
    fail<Unsupported>("a kernel needs {} bytes of workgroup memory, the device has {}",
                      k.shared_bytes, l.target.shared_bytes);
  }
  estimate(k);
  k.estimate.flops = uint64_t(std::llround(double(k.estimate.flops) * l.useful));
  k.name = kernel_name(k, l.key);
}

namespace {

std::optional<int64_t> step_of(const UOp& x, const UOp& lane);

std::optional<int64_t> step_of_product(const UOp& x, const UOp& lane) {
  const auto a = step_of(x->src(0), lane), b = step_of(x->src(1), lane);
  if (!a || !b) return std::nullopt;
  if (*a == 0 && *b == 0) return 0;
  if (x->src(1)->is_const()) return *a * x->src(1)->const_int();
  if (x->src(0)->is_const()) return *b * x->src(0)->const_int();
  return std::nullopt;
}

std::optional<int64_t> step_of(const UOp& x, const UOp& lane) {
  if (x == lane) return 1;
  if (x->src_count == 0 || x->op == Op::Range || x->op == Op::Special) return 0;
  if (x->op == Op::Mul) return step_of_product(x, lane);
  std::optional<int64_t> s[4];
  bool independent = true;
  for (uint32_t i = 0; i < x->src_count && i < 4; i++) {
    s[i] = step_of(x->src(i), lane);
    independent = independent && s[i] == 0;
  }
  switch (x->op) {
    case Op::Add: return s[0] && s[1] ? std::optional(*s[0] + *s[1]) : std::nullopt;
    case Op::Sub: return s[0] && s[1] ? std::optional(*s[0] - *s[1]) : std::nullopt;
    case Op::Neg: return s[0] ? std::optional(-*s[0]) : std::nullopt;
    case Op::Cast:
      return is_int(x->dtype) && size_bytes(x->dtype) >= size_bytes(x->src(0)->dtype) ? s[0]
             : independent ? std::optional<int64_t>(0)
                           : std::nullopt;
    case Op::After: return s[0];
    default: return independent ? std::optional<int64_t>(0) : std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> lane_stride(const UOp& offset, const UOp& lane_range) {
  return step_of(offset, lane_range);
}

}  // namespace tuff::kernel
