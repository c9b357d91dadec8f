#include "sched/norms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_graph.h"
#include "sched/loops.h"
#include "sched/parts.h"
#include "sched/rows.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

// The factors of a product, whatever its order.
void add_factors(const UOp& u, std::vector<UOp>& out) {
  if (u->op != Op::Mul) return out.push_back(u);
  add_factors(u->src(0), out);
  add_factors(u->src(1), out);
}
UOp multiplied(std::span<const UOp> factors) {
  UOp all;
  for (const UOp& f : factors) all = all ? alu(Op::Mul, {all, f}) : f;
  return all;
}

// What stores each element times what elements of a row have in common.
struct Normed {
  UOp end;
  UOp element, common;
  UOp walked;  // what the reductions in `common` fold
};

bool has_reduce(const UOp& u) {
  return std::ranges::any_of(toposort(u), [](const Node* n) { return n->op == Op::Reduce; });
}

// Each product makes it again for its rows.
bool is_cheap(const UOp& element) {
  constexpr uint32_t kDear = 5, kMostLoads = 3;  // in the costs of ops.def
  size_t loads = 0;
  for (const Node* n : toposort(element)) {
    loads += n->op == Op::Load;
    if (is_alu(n->op) && n->dtype != DType::Index && row(n->op).cost >= kDear) return false;
  }
  return loads <= kMostLoads;
}

std::optional<Normed> normed(const Call& c) {
  if (c.kind != CallKind::Kernel || !(c.runs == 1) || c.ast->src_count != 1) return {};
  Normed out;
  out.end = slot_ast(c)->src(0);
  const UOp& store = out.end->src(0);
  const UOp& value = store->src(1);
  if (store->src_count > 2 || store->src(0)->src_count > 2 || value->dtype != DType::F32) return {};
  const std::vector<const Node*> nodes = toposort(out.end);
  if (!has_fixed_loops(nodes)) return {};
  for (const Node* n : nodes) {
    if (n->op == Op::Load && n->src(0)->src_count > 2) return {};
    if (n->op != Op::Reduce) continue;
    const bool alike = n->src_count == 2 && (!out.walked || out.walked == n->src(1));
    if (!alike || n->get<ReduceArg>().op != Op::Add) return {};
    out.walked = n->src(1);
  }
  if (!out.walked) return {};
  std::vector<UOp> all, common, own;
  add_factors(value, all);
  for (const UOp& f : all) (has_reduce(f) ? common : own).push_back(f);
  if (common.empty() || own.empty()) return {};
  out.common = multiplied(common), out.element = multiplied(own);
  return is_cheap(out.element) ? std::optional(out) : std::nullopt;
}

// A product kernel with a norm's elements in it.
class NormTaker {
 public:
  // memory: by slot.
  NormTaker(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of)
      : s_(s), memory_(memory), target_of_(target_of) {}

  // The calls in order, some of them gone.
  std::vector<Call> run(std::span<const Call> calls) {
    for (const Call& c : calls) made_.push_back(c);
    gone_.assign(calls.size(), 0);
    for (uint32_t n = 0; n < made_.size(); n++) {
      if (!target_of_(made_[n].device).has_local) continue;
      if (const std::optional<Normed> norm = normed(made_[n])) take(calls, n, *norm);
    }
    std::vector<Call> out;
    for (size_t c = 0; c < made_.size(); c++)
      if (!gone_[c]) out.push_back(std::move(made_[c]));
    return out;
  }

 private:
  void take(std::span<const Call> calls, uint32_t n, const Normed& norm) {
    const uint32_t slot = slot_of(norm.end->src(0)->src(0));
    std::vector<const Call*> own{&calls[n]};
    std::vector<std::pair<uint32_t, Call>> readers;
    for (uint32_t c = n + 1; c < made_.size(); c++) {
      if (gone_[c] || !contains(made_[c].args, slot)) continue;
      std::optional<Call> reader = with_norm(made_[c], slot, norm);
      if (!reader || !reads_in_time(n, c)) return;
      own.push_back(&calls[c]);
      readers.emplace_back(c, std::move(*reader));
    }
    if (readers.empty() || is_needed(s_, own, slot)) return;
    for (auto& [c, call] : readers) made_[c] = std::move(call);
    gone_[n] = 1;
  }
  // What the norm reads is there until its reader runs.
  bool reads_in_time(uint32_t n, uint32_t reader) const {
    const CallAccess norm = access_of(made_[n]);
    const auto overwrites = [&](uint32_t w) {
      return std::ranges::any_of(norm.reads, [&](uint32_t r) { return memory_[r] == memory_[w]; });
    };
    for (uint32_t c = n + 1; c <= reader; c++) {
      if (gone_[c]) continue;
      const auto args = std::span(made_[c].args).first(made_[c].output_count);
      if (std::ranges::any_of(args, overwrites)) return false;
    }
    return true;
  }

  std::optional<Call> with_norm(const Call& c, uint32_t slot, const Normed& norm) const {
    if (c.kind != CallKind::Kernel || !(c.runs == 1) || c.device.empty()) return {};
    if (contains(std::span(c.args).first(c.output_count), slot)) return {};
    UOp ast = slot_ast(c);
    UOpMap<UOp> sums;
    size_t read = 0;
    const std::vector<const Node*> nodes = toposort(ast);
    if (!has_fixed_loops(nodes)) return {};
    for (const Node* n : nodes) {
      if (n->op == Op::Load && slot_of(n->src(0)) == slot) read++;
      if (n->op != Op::Reduce) continue;
      const int64_t vectors = vectors_of(n);
      if (vectors == 0 || vectors > kMostNormedVectors || n->src_count != 2) return {};
      if (const UOp sum = normed_sum(UOp(n), slot, norm)) sums.emplace(UOp(n), sum);
    }
    if (sums.empty() || read == 0) return {};
    ast = substitute(ast, sums);
    for (const Node* n : toposort(ast))
      if (n->op == Op::Load && slot_of(n->src(0)) == slot) return {};
    if (toposort(ast).size() > 2 * kMaxRowNodes) return {};
    Call out = call_of(c.device, {ast->src().begin(), ast->src().end()});
    if (out.args.size() > target_of_(c.device).max_buffers) return {};
    return out;
  }
  // The sum of the elements' products, times what they have in common; empty where it reads them in
  // another way.
  static UOp normed_sum(const UOp& sum, uint32_t slot, const Normed& norm) {
    const UOp& walked = sum->src(1);
    if (!(walked->src(0) == norm.walked->src(0))) return {};
    std::vector<UOp> factors;
    add_factors(sum->src(0), factors);
    const auto reads = [&](const UOp& f) {
      return f->op == Op::Load && slot_of(f->src(0)) == slot;
    };
    const auto found = std::ranges::find_if(factors, reads);
    if (found == factors.end() || (*found)->src(0)->src_count > 2) return {};
    const UOp load = *found;
    factors.erase(found);
    if (std::ranges::any_of(factors, [&](const UOp& f) { return depends_on(f, load); })) return {};
    const std::optional<UOpMap<UOp>> at = loops_at(norm.end, load->src(0)->src(1));
    if (!at) return {};
    UOpMap<UOp> place = *at;
    place.emplace(norm.walked, walked);
    const UOp common = simplify(substitute(norm.common, place));
    // One row of which all is summed.
    const auto open = ranges_below(common, AxisKind::Reduce);
    for (const UOp& r : norm_rows(norm))
      if (depends_on(place.at(r), walked)) return {};
    if (open.size() != 1 || !(open[0] == walked)) return {};
    const UOp element = simplify(substitute(norm.element, place));
    const UOp product = substitute(sum->src(0), {{load, element}});
    return alu(Op::Mul, {with_src(sum, std::vector<UOp>{product, walked}), common});
  }
  // Loops that what elements have in common depends on.
  static std::vector<UOp> norm_rows(const Normed& norm) {
    return ranges_below(norm.common, AxisKind::Loop);
  }

  Schedule& s_;
  std::span<const uint32_t> memory_;
  const TargetOf& target_of_;
  std::vector<Call> made_;  // by call
  std::vector<uint8_t> gone_;
};

}  // namespace

std::vector<Call> take_norms(Schedule& s, std::span<const uint32_t> memory,
                             const TargetOf& target_of, std::span<const Call> calls) {
  return NormTaker(s, memory, target_of).run(calls);
}

}  // namespace tuff::sched
