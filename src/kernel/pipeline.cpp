#include "kernel/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/contains.h"
#include "base/cost.h"
#include "base/log.h"
#include "base/nearest.h"
#include "ir/one_sweep.h"
#include "ir/spec.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lower/beside.h"
#include "kernel/lower/ordered.h"
#include "kernel/opt/random_opts.h"
#include "sched/beside.h"
#include "sched/canonical.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// THE order. Opts stand before everything that lowers, so that they see the AST sched made.
constexpr Pass kPasses[] = {
    {"separate-loops", pass_separate_loops, true},
    {"merge-axes", pass_merge_axes, false},
    {"simplify", pass_simplify, false},
    {"phases", pass_phases, false},
    {"reduce-order", pass_reduce_order, false},
    {"row-factors", pass_row_factors, false},
    {"opts", pass_opts, false},
    {"one-sweep", pass_one_sweep, true},
    {"serial-products", pass_serial_products, true},
    {"loop-limit", pass_loop_limit, true},
    {"simplify-split", pass_simplify, false},
    {"lane-factors", pass_lane_factors, false},
    {"packed-words", pass_packed_words, false},
    {"packed-rows", pass_packed_rows, false},
    {"kept-rows", pass_kept_rows, true},
    {"row-buffers", pass_row_buffers, false},
    {"reduces", pass_reduces, true},
    {"launch", pass_launch, true},
    {"bounds", pass_bounds, true},
    {"decompose", pass_decompose, true},
    {"lost-lanes", pass_lost_lanes, true},
    {"wide-integers", pass_wide_integers, true},
    {"atomic-words", pass_atomic_words, true},
    {"word-storage", pass_word_storage, true},
    {"index-order", pass_index_order, false},
    {"index-type", pass_index_type, true},
    {"linearize", pass_linearize, true},
    {"prefetch", pass_prefetch, false},
    {"streaming-stores", pass_streaming_stores, false},
    {"finish", pass_finish, true},
};
constexpr size_t kPassCount = std::size(kPasses);

struct Clock {
  std::atomic<uint64_t> calls{0}, total_ns{0};
};
std::array<Clock, kPassCount>& clocks() {
  static std::array<Clock, kPassCount> c;
  return c;
}

void run_pass(size_t i, Lowering& l) {
  const auto begin = std::chrono::steady_clock::now();
  kPasses[i].run(l);
  const auto spent = std::chrono::steady_clock::now() - begin;
  clocks()[i].calls.fetch_add(1, std::memory_order_relaxed);
  clocks()[i].total_ns.fetch_add(uint64_t(std::chrono::nanoseconds(spent).count()),
                                 std::memory_order_relaxed);
  if (!l.options.check_spec) return;
  if (l.out.ops.empty()) {
    check_spec(l.ast, kFloorKernel, kPasses[i].name);
  } else {
    check_linear_spec(l.out.ops, kPasses[i].name);
  }
}

LinearKernel run_passes(Lowering& l, std::span<const std::string> skipped) {
  for (size_t i = 0; i < kPassCount; i++) {
    const bool skip = contains(skipped, kPasses[i].name);
    if (skip && kPasses[i].required)
      fail<InvalidArgument>("pass '{}' cannot be skipped", kPasses[i].name);
    if (!skip) run_pass(i, l);
  }
  return std::move(l.out);
}

std::optional<LinearKernel> lower_launches(const UOp& ast, std::span<const UOp> launches,
                                           const Target& target, const LowerOptions& options) {
  Target own = target;
  if (own.max_loop_trips) own.max_loop_trips -= 1;  // a branch is a loop of one iteration
  std::optional<LinearKernel> joined =
      lower_beside(launches, target, [&](const UOp& launch, int64_t first_group) {
        Lowering l{own, launch, launch->key, std::nullopt, {}, options};
        l.first_group = first_group;
        return run_passes(l, options.skipped);
      });
  if (!joined) return {};
  const Estimate estimate = joined->estimate;
  Lowering l{target, ast, ast->key, std::nullopt, std::move(*joined), options};
  pass_finish(l);
  l.out.estimate = estimate;
  if (options.check_spec) check_linear_spec(l.out.ops, "beside");
  return std::move(l.out);
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

LinearKernel lower(const UOp& ast, const Target& target, const LowerOptions& options) {
  TUFF_CHECK(ast && ast->op == Op::Sink, "a kernel is a Sink of Ends");
  if (const std::vector<UOp> launches = sched::launches_of(ast);
      !launches.empty() && !options.check_bounds) {
    if (std::optional<LinearKernel> k = lower_launches(ast, launches, target, options)) return *k;
  }
  Lowering l{target, ast, ast->key, std::nullopt, {}, options};
  return run_passes(l, options.skipped);
}

LinearKernel lower_with(const UOp& ast, const Target& target, std::vector<Opt> opts,
                        std::span<const std::string> skipped) {
  TUFF_CHECK(ast && ast->op == Op::Sink, "a kernel is a Sink of Ends");
  Lowering l{target, ast, ast->key, std::move(opts), {}, {}};
  return run_passes(l, skipped);
}

UOp ast_for_opts(const UOp& ast, const Target& target) {
  Lowering l{target, ast, ast->key, std::nullopt, {}, {}};
  for (const Pass& p : kPasses) {
    if (p.run == pass_opts) break;
    p.run(l);
  }
  return OrderedLoop(l.ast).hidden();
}

std::vector<PassTime> pass_times() {
  std::vector<PassTime> out;
  for (size_t i = 0; i < kPassCount; i++) {
    out.push_back({kPasses[i].name, clocks()[i].calls.load(), clocks()[i].total_ns.load()});
  }
  return out;
}

void pass_separate_loops(Lowering& l) { l.ast = separate_loops(l.ast, l.target.has_local); }
void pass_merge_axes(Lowering& l) { l.ast = sched::canonicalize(l.ast); }
void pass_phases(Lowering& l) { l.ast = simplify(split_phases(l.ast)); }
void pass_reduce_order(Lowering& l) {
  const int64_t lanes = cost::cpu::lanes(l.target);
  l.ast = l.target.has_local ? reorder_reductions(l.ast) : join_gathered_axes(l.ast, lanes);
}
// Where rows need not be whole then.
void pass_row_factors(Lowering& l) {
  if (!allows(l.target, OptKind::Slab)) return;
  const UOp made = with_factors_outside(l.ast);
  if (made == l.ast) return;
  const auto columns = columns_of_rows(made);
  if (columns && one_sweep(made, *columns) && !one_sweep(l.ast, *columns)) l.ast = made;
}
void pass_simplify(Lowering& l) { l.ast = simplify(l.ast); }

void pass_opts(Lowering& l) {
  // What a matrix loads cannot be checked element by element.
  Target allowed = l.target;
  if (l.options.check_bounds) allowed.matrix_shapes.clear();
  const OrderedLoop ordered(l.ast);
  l.ast = ordered.hidden();
  Tiling t(l.ast, allowed);
  const bool has_matrices = l.given_opts && contains(*l.given_opts, OptKind::Matrix, &Opt::kind);
  if (l.given_opts && !(has_matrices && l.options.check_bounds)) {
    for (const Opt& o : *l.given_opts) apply(t, o);
  } else if (const uint64_t seed = l.options.random_seed; seed && !needs_slabs(t)) {
    const int64_t most_lanes = l.options.check_bounds ? 16 : 32;
    for (const Opt& o : random_opts(l.ast, allowed, seed ^ l.key, most_lanes)) apply(t, o);
  } else if (l.options.choose_opts || needs_slabs(t)) {
    // A checked access writes a record per lane: wide tiles would take minutes to compile.
    Target narrow = allowed;
    if (l.options.check_bounds && !narrow.has_local)
      narrow.vector_bytes = 16, narrow.vector_registers = 8;
    apply_heuristics(t, l.ast, narrow);
    ordered.share_out(t);
  }
  l.ast = ordered.restored(build(t, &l.subgroup_rows));
  l.shares_rows = l.subgroup_rows.has_value();
  l.useful = useful(t);
  l.shares_outermost = t.shares_outermost;
  l.out.opts = to_string(t.applied);
}

}  // namespace tuff::kernel
