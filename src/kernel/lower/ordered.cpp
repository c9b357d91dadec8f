#include "kernel/lower/ordered.h"

#include <algorithm>

#include "base/check.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kLeastPerGroup = 1 << 14;  // elements that are worth a thread

bool is_ordered(const UOp& r) { return r->op == Op::Range && kind_of(r.get()) == AxisKind::Ordered; }

}  // namespace

OrderedLoop::OrderedLoop(const UOp& ast) : hidden_(ast) {
  for (const Node* n : toposort(ast)) {
    if (!is_ordered(UOp(n))) continue;
    TUFF_CHECK(!range_, "a kernel has two loops whose iterations have an order");
    range_ = UOp(n);
  }
  if (!range_) return;
  counter_ = variable(kOrderedCounter, 0, std::max<int64_t>(range_->src(0)->max - 1, 0));
  hidden_ = rebuild(ast, [&](const UOp& old, std::span<const UOp> src) {
    if (old == range_) return counter_;
    if (old->op != Op::End) return UOp();
    std::vector<UOp> left(src.begin(), src.end());
    std::erase(left, counter_);
    return with_src(old, left);
  });
}

UOp OrderedLoop::restored(const UOp& ast) const {
  if (!range_) return ast;
  const UOp loop = range(range_->src(0), free_range_id({&ast, 1}), AxisKind::Ordered);
  return rebuild(ast, [&](const UOp& old, std::span<const UOp> src) {
    if (old == counter_) return loop;
    if (old->op != Op::End) return UOp();
    std::vector<UOp> all(src.begin(), src.end());
    all.insert(all.begin() + 1, loop);
    return with_src(old, all);
  });
}

void OrderedLoop::share_out(Tiling& t) const {
  if (!range_ || t.target.has_local) return;
  int64_t work = std::max<int64_t>(range_->src(0)->max, 1);
  int widest = -1;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    work *= std::max<int64_t>(axis.range->src(0)->max, 1);
    const bool is_wider = widest < 0 || axis.main_size() > t.axes[size_t(widest)].main_size();
    if (axis.main_is_const() && is_wider) widest = a;
  }
  if (widest < 0) return;
  const int64_t left = t.axes[size_t(widest)].main_size();
  int64_t groups = std::min<int64_t>({int64_t(t.target.cores), left, work / kLeastPerGroup});
  while (groups > 1 && left % groups != 0) groups--;
  if (groups > 1) try_apply(t, {OptKind::Group, widest, groups});
}

}  // namespace tuff::kernel
