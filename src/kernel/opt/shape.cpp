#include "kernel/opt/shape.h"

#include <algorithm>
#include <bit>

#include "ir/walk.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

uint64_t product_of(RangeMask m, const RangeDeps& deps) {
  uint64_t n = 1;
  for (size_t i = 0; i < deps.ranges().size(); i++) {
    if (m >> i & 1)
      n = std::min<uint64_t>(n * uint64_t(deps.ranges()[i]->src(0)->max), uint64_t(1) << 50);
  }
  return n;
}

bool is_product_of_loads(const Node* reduce) {
  if (reduce->get<ReduceArg>().op != Op::Add) return false;
  const Node* v = through_casts(reduce->src(0).get());
  if (v->op != Op::Mul) return false;
  for (const UOp& s : v->src()) {
    const Node* x = through_casts(s.get());
    if (x->op == Op::Where) x = through_casts(x->src(1).get());
    bool loads = false;
    for (const Node* n : toposort(UOp(x))) loads = loads || n->op == Op::Load;
    if (!loads) return false;
  }
  return true;
}

// Whether it walks windows side by side, of which a reduction walks each.
bool walks_windows(const Access& a, int64_t step, const KernelShape& k, const Tiling& t) {
  for (size_t i = 0; i < k.axes.size(); i++) {
    const AxisShape& x = k.axes[i];
    const bool steps = x.reduced && !x.symbolic && x.size == step && !(a.gate & x.bit);
    if (steps && step > 1 && a.step(t.axes[i].range) == 1) return true;
  }
  return false;
}

void find_main_reduce(KernelShape& k, const Tiling& t, RangeDeps& deps) {
  uint64_t most = 0;
  for (const UOp& r : k.reduces) {
    const uint64_t work = product_of(deps.of(r->src(0)), deps);
    if (work > most) most = work, k.main_reduce = r.get();
  }
  if (!k.main_reduce) return;
  k.main_is_product = is_product_of_loads(k.main_reduce);
  for (const UOp& r : k.main_reduce->src().subspan(1)) k.main_axes.push_back(axis_of(t, r.get()));
}

// Vectors of such an access are every n-th element of several of contiguous memory.
bool interleaves(const Access& a, int64_t step, const KernelShape& k, const Tiling& t, size_t i) {
  const bool masked = size_bytes(a.index->dtype) == 4;  // see is_strided() in render
  const bool windows =
      !a.store && !(a.gate & k.axes[i].bit) && walks_windows(a, step, k, t);
  return step > 1 && step <= kMostInterleaved && (masked || windows);
}

void count_pieces(AxisShape& x, const Access& a, const UOp& range, double share) {
  const auto piece = std::ranges::find(a.pieces, range, &Access::Piece::range);
  if (a.store || (a.repeated & x.bit) || piece == a.pieces.end()) return;
  if (piece->length < kLeastPiece) return;
  x.in_pieces++;
  x.unit_pieces += piece->walked;
  x.shuffled_share += share;
  x.unit_pieces_share += piece->walked ? share : 0;
  x.piece = x.piece == 0 ? piece->length : std::min(x.piece, piece->length);
}

// Loads that a store of one lane counts as: the sums of many elements may be stored with a stride.
constexpr double kScatteredStore = 4;

void count_accesses(KernelShape& k, const Tiling& t, RangeDeps& deps, const UOp& ast) {
  std::vector<const Node*> main_loads;
  if (k.main_reduce) {
    for (const Node* n : toposort(k.main_reduce->src(0))) {
      if (n->op == Op::Load) main_loads.push_back(n->src(0).get());
    }
  }
  k.main_loads = int(main_loads.size());
  const std::vector<Access> all = accesses(ast, deps);
  uint64_t most = 1;
  for (const Access& a : all) most = std::max(most, product_of(deps.of(a.index), deps));
  for (const Access& a : all) {
    const double runs = double(product_of(deps.of(a.index), deps)) / double(most);
    const double share = a.store ? 1 : runs;
    const size_t number =
        size_t(std::find(main_loads.begin(), main_loads.end(), a.index.get()) - main_loads.begin());
    const bool in_main = number < main_loads.size();
    const uint32_t number_bit = uint32_t(1) << std::min<size_t>(number, 31);
    for (size_t i = 0; i < k.axes.size(); i++) {
      AxisShape& x = k.axes[i];
      const int64_t step = a.step(t.axes[i].range);
      const bool irregular = (a.irregular & x.bit) != 0;
      if (a.gate & x.bit) x.gated++;
      const bool strided = irregular || (step != 0 && step != 1), unit = step == 1 && !irregular;
      const bool repeated = !a.store && (a.repeated & x.bit);
      const bool interleaved = interleaves(a, step, k, t, i);
      x.strided += strided;
      x.repeated += repeated;
      x.interleaved += interleaved;
      x.near_stores += interleaved && a.store;
      if (unit) (a.store ? x.unit_stores : x.unit_loads)++;
      if (unit) x.unit_share += share;
      if (unit) x.unit_bytes = std::max(x.unit_bytes, size_bytes(a.index->dtype));
      if (strided) x.strided_share += a.store ? std::min(1.0, runs * kScatteredStore) : runs;
      x.shuffled_share += share * (int{repeated} + int{interleaved});
      if (in_main && !a.store && (step != 0 || irregular)) x.product_reads |= number_bit;
      if (in_main && !a.store && step == 1 && !irregular) x.product_units |= number_bit;
      if (in_main && interleaved && !a.store) x.product_near |= number_bit;
      if (in_main && step == 0 && !irregular && !a.store) x.broadcast++;
      count_pieces(x, a, t.axes[i].range, share);
    }
  }
}

}  // namespace

int64_t divisor_up_to(int64_t n, int64_t most, bool power_of_two) {
  for (int64_t d = std::min(n, most); d > 1; d--) {
    if (n % d == 0 && (!power_of_two || std::has_single_bit(uint64_t(d)))) return d;
  }
  return 1;
}

KernelShape shape_of(const UOp& ast, const Tiling& t) {
  KernelShape k;
  RangeDeps deps(ast);
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Reduce) k.reduces.push_back(UOp(n));
    if (is_alu(n->op) && n->dtype != DType::Index && n->dtype != DType::Bool)
      k.work += product_of(deps.of(UOp(n)), deps);
    if (n->op == Op::Reduce) k.work += product_of(deps.of(n->src(0)), deps);
    if (n->op == Op::Store && n->src(0)->src(0)->op == Op::Param) {
      const UOp& memory = n->src(0)->src(0);
      k.stored_bytes = std::max(k.stored_bytes,
                                memory->get<ParamArg>().count * int64_t(size_bytes(memory->dtype)));
    }
    if (n->op == Op::Load || n->op == Op::Store) k.work += product_of(deps.of(UOp(n)), deps);
  }
  RangeMask shared = ~RangeMask(0);
  const std::vector<const Node*> order = toposort(ast);
  for (const UOp& r : k.reduces)
    if (!is_made_besides(r.get(), order, deps)) shared &= deps.of(r);
  for (const Axis& a : t.axes) {
    AxisShape x;
    x.size = a.range->src(0)->max;
    x.least_size = std::max<int64_t>(a.range->src(0)->min, 1);
    x.symbolic = !a.range->src(0)->is_const();
    x.reduced = a.reduced;
    x.bit = deps.bit(a.range);
    x.shared = !a.reduced && (shared & x.bit) != 0;
    if (x.shared) k.outputs *= uint64_t(x.size);
    k.axes.push_back(x);
  }
  find_main_reduce(k, t, deps);
  count_accesses(k, t, deps, ast);
  return k;
}

}  // namespace tuff::kernel
