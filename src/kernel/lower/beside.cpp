// Launches beside each other (sched/beside.h): each is lowered for itself, as if it were alone, and
// stands in a branch that the workgroups of one of them take. So each keeps the mapping that suits
// it, and a workgroup needs the registers and the memory of the largest.
#include "kernel/lower/beside.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int32_t kOwnNumbers = 1 << 20;  // of loops and registers of one of them

// One after the other in one list.
class Branches {
 public:
  explicit Branches(const std::vector<LinearKernel>& parts) {
    std::vector<UOpMap<int32_t>> ranks;
    for (const LinearKernel& k : parts) {
      ranks.push_back(shared_ranks(k));
      for (const auto& [u, rank] : ranks.back()) {
        int64_t& count = counts_[{rank, u->dtype}];
        count = std::max(count, u->get<SharedArg>().count);
      }
    }
    for (size_t i = 0; i < parts.size(); i++)
      lists_.push_back(with_own_numbers(parts[i].ops, i, ranks[i]));
    for (const std::vector<UOp>& list : lists_)
      for (const UOp& u : list) uses_[u.get()]++;
  }

  // first: of each its first workgroup, and at the end how many there are.
  std::vector<UOp> joined(std::span<const int64_t> first) {
    // What several of them begin with, and what has no place in the order.
    for (const std::vector<UOp>& list : lists_)
      for (const UOp& u : list)
        if (uses_.at(u.get()) > 1 || is_declaration(u)) emit(u);
    std::vector<UOp> branches;
    for (size_t i = 0; i < lists_.size(); i++) branches.push_back(branch(first, i));
    for (size_t i = 0; i < lists_.size(); i++) {
      out_.push_back(branches[i]);
      for (const UOp& u : lists_[i])
        if (!done_.contains(u.get())) out_.push_back(u);
      out_.push_back(make(Op::End, DType::Void, {branches[i]}));
    }
    return std::move(out_);
  }

 private:
  // What workgroup memory each has of a type, the largest first: another has the same in its place.
  static UOpMap<int32_t> shared_ranks(const LinearKernel& k) {
    std::map<DType, std::vector<UOp>> by_type;
    for (const UOp& u : k.ops)
      if (u->op == Op::Shared) by_type[u->dtype].push_back(u);
    UOpMap<int32_t> ranks;
    for (auto& [t, all] : by_type) {
      std::ranges::stable_sort(all, std::greater(),
                               [](const UOp& u) { return u->get<SharedArg>().count; });
      for (size_t i = 0; i < all.size(); i++) ranks.emplace(all[i], int32_t(i));
    }
    return ranks;
  }
  UOp shared(int32_t rank, DType t) const {
    constexpr int32_t kTypes = 64;
    return make(Op::Shared, t, {}, SharedArg{rank * kTypes + int32_t(t), counts_.at({rank, t})});
  }
  std::vector<UOp> with_own_numbers(const std::vector<UOp>& ops, size_t part,
                                    const UOpMap<int32_t>& ranks) const {
    const auto by = int32_t(part) * kOwnNumbers;
    std::unordered_map<const Node*, UOp> mapped;
    std::vector<UOp> out, src;
    for (const UOp& u : ops) {
      src.clear();
      for (const UOp& s : u->src()) src.push_back(mapped.at(s.get()));
      Arg arg = u->arg;
      if (u->op == Op::Range && is_loop(kind_of(u.get()))) {
        RangeArg own = u->get<RangeArg>();
        own.id += by;
        arg = own;
      } else if (u->op == Op::Register) {
        arg = u->get<int64_t>() + by;
      }
      out.push_back(u->op == Op::Shared ? shared(ranks.at(u), u->dtype)
                                        : make(u->op, u->dtype, src, arg));
      mapped.emplace(u.get(), out.back());
    }
    return out;
  }

  static bool is_declaration(const UOp& u) {
    const bool lane = u->op == Op::Range && is_lane(kind_of(u.get()));
    return lane || u->op == Op::Const || u->op == Op::Param || u->op == Op::Variable ||
           u->op == Op::Special || u->op == Op::Shared || u->op == Op::Register;
  }
  const UOp& emit(const UOp& u) {
    if (done_.insert(u.get()).second) out_.push_back(u);
    return u;
  }
  UOp number(int64_t n) { return emit(int_const(DType::I32, n)); }
  // A loop of one iteration for these workgroups, and of none for others.
  UOp branch(std::span<const int64_t> first, size_t i) {
    const UOp all = number(first.back());
    const UOp group = emit(make(Op::Special, DType::I32, {all}, SpecialArg{'g', 0}));
    const UOp begin = number(first[i] - 1), end = number(first[i + 1]);
    const UOp after = emit(make(Op::CmpLt, DType::Bool, {begin, group}));
    const UOp before = emit(make(Op::CmpLt, DType::Bool, {group, end}));
    const UOp inside = emit(make(Op::And, DType::Bool, {after, before}));
    const UOp one = number(1), none = number(0);
    const UOp trips = emit(make(Op::Where, DType::I32, {inside, one, none}));
    const auto id = int32_t(lists_.size() + i) * kOwnNumbers;
    return make(Op::Range, DType::I32, {trips}, RangeArg{id, AxisKind::Loop});
  }

  std::map<std::pair<int32_t, DType>, int64_t> counts_;  // elements of what they have in turn
  std::vector<std::vector<UOp>> lists_;
  std::unordered_map<const Node*, int> uses_;
  std::unordered_set<const Node*> done_;
  std::vector<UOp> out_;
};

// Whether they agree on what a workgroup is.
bool have_one_shape(const LinearKernel& a, const LinearKernel& b) {
  const bool subgroups = !a.subgroup_size || !b.subgroup_size || a.subgroup_size == b.subgroup_size;
  return a.local == b.local && subgroups;
}

bool has_matrices(const LinearKernel& k) {
  return std::ranges::any_of(k.ops, [](const UOp& u) {
    return u->op == Op::MatrixFill || u->op == Op::MatrixLoad;
  });
}

}  // namespace

std::optional<LinearKernel> lower_beside(std::span<const UOp> launches, const Target& target,
                                         const LowerLaunch& lower_launch) {
  constexpr size_t kMostLanes = 32;  // bits of a LaneMask
  std::vector<LinearKernel> parts;
  std::vector<int64_t> first{0};
  for (const UOp& ast : launches) {
    LinearKernel k = lower_launch(ast, first.back());
    if (has_matrices(k) || (!parts.empty() && !have_one_shape(parts[0], k))) return {};
    first.push_back(first.back() + k.groups[0].max());
    parts.push_back(std::move(k));
  }
  if (first.back() > int64_t(target.max_groups[0])) return {};
  LinearKernel out;
  out.ops = Branches(parts).joined(first);
  std::unordered_set<const Node*> lanes;
  uint64_t shared = 0;
  for (const UOp& u : out.ops) {
    if (u->op == Op::Range && is_lane(kind_of(u.get()))) lanes.insert(u.get());
    if (u->op == Op::Shared)
      shared += align_up(uint64_t(u->get<SharedArg>().count) * size_bytes(u->dtype),
                         uint64_t(kSharedAlignment));
  }
  if (lanes.size() > kMostLanes || shared > target.shared_bytes) return {};
  out.groups = {Dim(first.back()), Dim(1), Dim(1)};
  out.local = parts[0].local;
  for (const LinearKernel& k : parts) {
    out.subgroup_size = std::max(out.subgroup_size, k.subgroup_size);
    out.estimate.flops += k.estimate.flops;
    out.estimate.bytes += k.estimate.bytes;
    out.opts += (out.opts.empty() ? "" : " | ") + k.opts;
  }
  return out;
}

}  // namespace tuff::kernel
