// TUFF_CHECK_OOB: every access to memory is gated by a test of its offset, and one that fails is
// written to a report, a further argument of the kernel. Runs while elements are still those of the
// schedule: what packs or widens them sees the report as it sees any other buffer.
#include <algorithm>

#include "ir/kernel_floor.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lower/words.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kTwo31 = int64_t(1) << 31, kTwo32 = int64_t(1) << 32;

int64_t count_of(const Node* memory) {
  return memory->op == Op::Param ? memory->get<ParamArg>().count : memory->get<SharedArg>().count;
}

class BoundsChecks {
 public:
  explicit BoundsChecks(Lowering& l) : l_(l), deps_(l.ast), tree_(l.ast, deps_) {
    int32_t slots = 0;
    for (const Node* n : toposort(l.ast)) {
      if (n->op == Op::Param) slots = std::max(slots, n->get<ParamArg>().slot + 1);
      if (accessed_memory(n)) add_site(n->src(0), n->op == Op::Store);
    }
    if (l.out.bounds.sites.empty()) return;
    l.out.bounds.slot = slots;
    report_ = param(slots, DType::U32, l.out.bounds.words);
  }

  UOp run() {
    const UOp checked = rebuild(l_.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
      const auto site = site_of_.find(old.get());
      return site == site_of_.end() ? UOp() : checked_index(old, src, site->second);
    });
    reports_.insert(reports_.begin(), checked->src().begin(), checked->src().end());
    return sink(reports_);
  }

 private:
  struct Site {
    size_t number;
    UOp lane;  // which of the site's records this lane writes
  };

  void add_site(const UOp& index, bool store) {
    const Node* memory = without_after(index->src(0).get());
    const UOp& offset = index->src(1);
    if (offset->is_const() && offset->const_int() >= 0 && offset->const_int() < count_of(memory))
      return;
    if (!site_of_.try_emplace(index.get(), Site{l_.out.bounds.sites.size(), index_const(0)}).second)
      return;
    BoundsSite s;
    s.slot = memory->op == Op::Param ? memory->get<ParamArg>().slot : -1;
    s.dtype = memory->dtype;
    s.count = count_of(memory);
    s.store = store;
    s.wide = !fits_i32(offset.get()) && l_.target.features.i64;
    s.first_word = l_.out.bounds.words;
    const std::vector<UOp> lanes = deps_.list(deps_.of(index) & deps_.kinds(is_lane));
    site_of_.at(index.get()).lane = flat_index(lanes);
    s.records = uint32_t(extent(lanes));
    l_.out.bounds.words += s.records * kBoundsRecordWords;
    l_.out.bounds.sites.push_back(s);
  }

  // One comparison finds what is below 0, too. Without int64 the low bits have to do where bounds
  // promise too little: they are those of the true offset.
  UOp is_inside(const UOp& offset, int64_t count) const {
    if (fits_i32(offset.get())) return lt(cast(offset, DType::U32), word(uint64_t(count)));
    if (!l_.target.features.i64) return lt(floormod(offset, kTwo31), index_const(count));
    return logical_and(lt(offset, index_const(count)), lt(index_const(-1), offset));
  }

  UOp checked_index(const UOp& old, std::span<const UOp> src, const Site& site) {
    const BoundsSite& s = l_.out.bounds.sites[site.number];
    const UOp inside = is_inside(src[1], s.count);
    const UOp outside = logical_not(inside);
    const UOp bad = src.size() > 2 ? logical_and(src[2], outside) : outside;
    const UOp first = site.lane * kBoundsRecordWords + index_const(s.first_word);
    report(first, bad, word(1));
    report(first + index_const(1), bad, low_word(src[1]));
    if (s.wide) report(first + index_const(2), bad, cast(floordiv(src[1], kTwo32), DType::U32));
    return with_gate(with_src(old, src), inside);
  }

  UOp low_word(const UOp& offset) const {
    const bool whole = fits_i32(offset.get()) || l_.target.features.i64;
    return cast(whole ? offset : floormod(offset, kTwo31), DType::U32);
  }

  void report(const UOp& at, const UOp& gate, const UOp& value) {
    const UOp store = make_store(make_index(report_, at, gate), value);
    const RangeMask open = deps_.of(store);
    reports_.push_back(
        make_end(store, loops_around(open), deps_.list(open & deps_.kinds(is_lane))));
  }

  // As the kernel nests them, also those that the offset does not depend on: an End says how loops
  // stand in each other.
  std::vector<UOp> loops_around(RangeMask open) const {
    std::vector<UOp> out;
    for (int loop = tree_.deepest(open); loop != LoopTree::kRoot; loop = tree_.parent(loop))
      out.insert(out.begin(), deps_.ranges()[size_t(loop)]);
    return out;
  }

  Lowering& l_;
  RangeDeps deps_;
  const LoopTree tree_;
  UOp report_;
  std::unordered_map<const Node*, Site> site_of_;  // Index nodes; the AST holds them
  std::vector<UOp> reports_;
};

}  // namespace

void pass_bounds(Lowering& l) {
  if (!l.options.check_bounds) return;
  BoundsChecks checks(l);
  if (!l.out.bounds.sites.empty()) l.ast = checks.run();
}

}  // namespace tuff::kernel
