#include "sched/fuse.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/contains.h"
#include "ir/loop.h"
#include "ir/walk.h"
#include "sched/loop_calls.h"
#include "sched/parts.h"
#include "sched/pick.h"
#include "sched/prepare.h"

namespace tuff::sched {

using namespace ir;

bool is_transfer(const Node& n) {
  return n.op == Op::Copy && n.src(0)->device &&
         *n.src(0)->device != n.get<Placement>().devices.at(0);
}

const std::string& FusePlan::device_of(uint32_t i) const {
  if (!device[i])
    fail<InvalidArgument>(
        "cannot realize a {} that no device is known for; copy it to a device first",
        name(nodes[i]->op));
  return *device[i];
}

std::vector<uint32_t> FusePlan::roots_of(uint32_t i) const {
  std::vector<uint32_t> out, work{i};
  std::unordered_set<uint32_t> seen{i};
  while (!work.empty()) {
    const uint32_t n = work.back();
    work.pop_back();
    if (realized[n] || nodes[n]->op == Op::Assign) {
      out.push_back(n);
      continue;
    }
    for (uint32_t s : sources(n))
      if (seen.insert(s).second) work.push_back(s);
  }
  return out;
}

bool repeats(const Node& n) {
  if (n.op != Op::Expand) return false;
  for (size_t i = 0; i < n.shape.size(); i++) {
    if (n.src(0)->shape[i] == 1 && !(n.shape[i] == 1)) return true;
  }
  return false;
}

namespace {

constexpr uint32_t kMaxDepth = 200;         // of one kernel's expression; rangeify recurses over it
constexpr uint32_t kTranscendental = 5;     // in the costs of ops.def
constexpr uint32_t kMemoryPerElement = 10;  // one full-sized load or store
constexpr uint32_t kFreeWhenRepeated = 2;
constexpr uint32_t kFreeMask = 6;     // a comparison, as one-hot and causal masks are
constexpr uint32_t kFreeDecode = 48;  // whole numbers and casts, of one buffer of bytes
// Whatever is made of one buffer of bytes, where a product computes it once per tile: 14 of GGUF's
// types take up to 181.
constexpr uint32_t kProductDecode = 200;
// Scales and zero points of packed numbers belong to groups of at least so many.
constexpr int64_t kGroup = 8;
constexpr size_t kPackedLoads = 3;  // numbers, scales, zero points
constexpr size_t kMaxUses = 8;
constexpr size_t kMaxLoads = 8;

// What the fused expression of a node costs, up to the realized nodes it reads.
struct Facts {
  uint32_t weight = 0;  // as a tree, saturating
  uint32_t depth = 0;
  std::vector<uint32_t> loads;  // distinct buffers read, by position; no more than kMaxLoads
  uint32_t full_loads = 0;      // of them, those with as many elements as the node
  int64_t reduced = 0;          // elements read by a Reduce inside; 0: none
  uint32_t reduction = 0;       // that Reduce, by position
  bool decodes = true;          // bytes, by whole numbers and casts alone
  bool packed = true;           // it is made of bytes, and of what is the same for kGroup or more
  bool constant = false;        // folded before it is a kernel
  bool row = false;  // loaded by an index that the elements of a row have in common, maybe scaled
};

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9fb21c651e98df25ull;
  return h ^ (h >> 29);
}

uint64_t dim_hash(const Dim& d) { return d.is_const() ? uint64_t(d.value()) : d.uop()->key; }

// Equal for movement ops that transform indexes alike.
uint64_t movement_hash(const Node& n) {
  uint64_t h = uint64_t(n.op) + 1;
  for (const Dim& d : n.src(0)->shape) h = mix(h, dim_hash(d));
  if (auto* shape = std::get_if<Shape>(&n.arg)) {
    for (const Dim& d : *shape) h = mix(h, dim_hash(d));
  } else if (auto* axes = std::get_if<IntVec>(&n.arg)) {
    for (int64_t a : *axes) h = mix(h, uint64_t(a));
  } else if (auto* pairs = std::get_if<Pairs>(&n.arg)) {
    for (const DimPair& p : *pairs) h = mix(mix(h, dim_hash(p.a)), dim_hash(p.b));
  }
  return h;
}

class Planner {
 public:
  Planner(FusePlan& plan, const TargetOf& target_of) : p_(plan), target_of_(target_of) {}

  void run() {
    flatten();
    force_roots();
    // Shared reductions first: what follows them is then seen as reading memory, not as a
    // reduction.
    cut_shared(true);
    const std::vector<uint8_t> forced = p_.realized;
    cut_structure();
    std::vector<uint8_t> structural = p_.realized;
    cut_shared(false);
    // What is shared now bounds expressions that seemed to hold a reduction: cut again without
    // them.
    for (size_t i = 0; i < structural.size(); i++) {
      const bool keep = !structural[i] || users_[i].size() > 1;
      p_.realized[i] = forced[i] || (p_.realized[i] && keep);
    }
    cut_structure();
    cut_shared(false);
    cut_expensive_epilogues();
    cut_to_buffer_limit();
    claim_assigns();
  }

 private:
  const Node& node(uint32_t i) const { return *p_.nodes[i]; }
  uint32_t source(uint32_t i, size_t k = 0) const { return p_.src[p_.src_begin[i] + k]; }
  bool is_leaf(uint32_t i) const { return p_.nodes[i]->src_count == 0; }
  bool reads_nothing(uint32_t i) const { return is_leaf(i) && node(i).op != Op::Buffer; }
  bool opaque(uint32_t i) const { return p_.realized[i] || is_leaf(i) || node(i).op == Op::Assign; }

  void flatten() {
    p_.nodes = toposort(p_.sinks);
    const size_t n = p_.nodes.size();
    p_.position.reserve(n);
    for (uint32_t i = 0; i < n; i++) p_.position.emplace(p_.nodes[i], i);
    for (const Node* node : p_.nodes) {
      p_.src_begin.push_back(uint32_t(p_.src.size()));
      const bool again = node->op == Op::Again;
      if (again) p_.earlier[p_.position.at(node)] = p_.position.at(node->src(1).get());
      for (const UOp& s : again ? node->src().first(1) : node->src())
        p_.src.push_back(p_.position.at(s.get()));
    }
    p_.src_begin.push_back(uint32_t(p_.src.size()));
    p_.realized.assign(n, 0);
    p_.stores_for.assign(n, kNone);
    p_.stored_by.assign(n, kNone);
    p_.sink_number.assign(n, kNone);
    facts_.resize(n);
    users_.resize(n);
    for (uint32_t i = 0; i < n; i++) {
      for (uint32_t s : p_.sources(i)) {
        if (users_[s].empty() || users_[s].back() != i) users_[s].push_back(i);
      }
    }
    movement_hash_.assign(n, 0);
    find_devices();
    find_picks();
    picks_.assign(n, 0), picks_few_.assign(n, 0);
    for (uint32_t i = 0; i < n; i++)
      if (const Node* chosen = picks_of(node(i))) {
        const uint32_t where = p_.position.at(chosen);
        const Node& all = node(p_.base(source(where, 1)));
        picks_[where] = 1;
        picks_few_[where] =
            kGroup * element_count(node(i).shape) <= element_count(all.shape);
      }
  }

  // Where nothing else than such sums reads what stands between them and their indexes. Rows of
  // memory are loaded by their index everywhere. On a CPU single elements are not: the steps of a
  // search are a kernel each, whose vectors load by index, and one kernel of all steps branches.
  void find_picks() {
    picked_by_.assign(p_.nodes.size(), UINT32_MAX);
    std::vector<std::pair<uint32_t, ElementPick>> picks;
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      if (!p_.device[i]) continue;
      std::optional<ElementPick> pick = row_pick(node(i));
      if (!pick && target_of_(*p_.device[i]).has_local) pick = element_pick(node(i));
      if (pick) picks.emplace_back(i, std::move(*pick));
    }
    do find_inside(picks);
    while (std::erase_if(picks, [&](const auto& pick) {
      return !std::ranges::all_of(pick.second.inner, [&](const Node* n) {
        return inside_pick_[p_.position.at(n)];
      });
    }));
    for (const auto& [i, pick] : picks) picked_by_[i] = p_.position.at(pick.index);
  }
  void find_inside(const std::vector<std::pair<uint32_t, ElementPick>>& picks) {
    std::vector<uint8_t> sums(p_.nodes.size(), 0);
    std::vector<uint8_t>& inside = inside_pick_;
    inside.assign(p_.nodes.size(), 0);
    for (const auto& [i, pick] : picks) {
      sums[i] = 1;
      for (const Node* n : pick.inner) inside[p_.position.at(n)] = 1;
    }
    for (uint32_t i = uint32_t(p_.nodes.size()); i-- > 0;) {
      if (inside[i])
        inside[i] = std::ranges::all_of(users_[i],
                                        [&](uint32_t u) { return sums[u] || inside[u]; });
    }
  }
  bool is_pick(uint32_t i) const { return picked_by_[i] != UINT32_MAX; }

  void find_devices() {
    p_.device.assign(p_.nodes.size(), nullptr);
    for (uint32_t i = uint32_t(p_.nodes.size()); i-- > 0;) {
      if (node(i).device) p_.device[i] = node(i).device;
      for (uint32_t s : p_.sources(i)) {
        if (!p_.device[s]) p_.device[s] = p_.device[i];
      }
    }
  }

  void realize(uint32_t i) {
    if (is_leaf(i) || node(i).op == Op::Assign) return;
    p_.realized[i] = 1;
  }

  // Before it is repeated. A value that is only read with its axes permuted and then merged is
  // stored permuted: the kernel that computes it has the axes apart, its reader would have to
  // divide.
  void realize_for_reader(uint32_t i) {
    uint32_t best = i;
    for (uint32_t k = i; users_[k].size() == 1;) {
      const uint32_t u = users_[k][0];
      if (node(u).op != Op::Reshape && node(u).op != Op::Permute) break;
      if (node(k).op == Op::Permute && node(u).op == Op::Reshape) best = k;
      k = u;
    }
    realize(best == i ? narrower(i) : best);
  }
  // What is only widened before it is repeated or shared, on GPUs: its readers widen it again, and
  // may multiply it as a matrix. On a CPU to narrow it to bf16 costs more (gradients of attention
  // 1.3 times).
  uint32_t narrower(uint32_t i) const {
    if (node(i).op != Op::Cast || !target_of_(p_.device_of(i)).has_local) return i;
    const uint32_t b = p_.base(source(i));
    const bool widens = size_bytes(node(b).dtype) < size_bytes(node(i).dtype);
    const bool is_more = element_count(node(b).shape) > element_count(node(i).shape);
    return widens && !is_more && !is_leaf(b) && node(b).op != Op::Assign ? b : i;
  }

  void force_roots() {
    for (size_t s = 0; s < p_.sinks.size(); s++) {
      const uint32_t i = p_.position.at(strip_reshapes(p_.sinks[s].get()));
      // A constant has no node to realize below its reshapes.
      const uint32_t root = reads_nothing(i) ? p_.position.at(p_.sinks[s].get()) : i;
      realize(root);
      if (reads_nothing(root)) {
        fail<InvalidArgument>("sink {} is a bare {} without a device; copy it to one first", s,
                              name(node(root).op));
      }
      if (p_.sink_number[root] == kNone) p_.sink_number[root] = int32_t(s);
    }
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      const Op op = node(i).op;
      if (op == Op::Contiguous || op == Op::Copy || op == Op::Scatter) realize(i);
      if (op == Op::Loop) realize_loop(i);
      if (op == Op::CustomKernel) {
        for (const UOp& s : node(i).src()) realize(p_.position.at(strip_reshapes(s.get())));
        realize(i);
      }
      if (op == Op::Again) {
        realize(p_.position.at(strip_reshapes(node(i).src(0).get())));
        realize(i);
      }
      if (is_transfer(node(i))) realize(p_.position.at(strip_reshapes(node(i).src(0).get())));
      if (op == Op::Assign && !assigned_part(node(i)))
        realize(p_.position.at(strip_reshapes(node(i).src(1).get())));
    }
  }

  void realize_loop(uint32_t i) {
    const size_t sequences = sequences_of(node(i)).size();
    for (size_t k = 0; k < p_.sources(i).size(); k++) {
      const UOp& s = node(i).src(k);
      const bool is_sequence = k > 0 && k <= sequences;
      realize(p_.position.at(is_sequence ? loop_rows(s).memory : strip_reshapes(s.get())));
    }
    realize(i);
  }

  Facts facts_of(uint32_t i) const {
    const uint32_t b = p_.base(i);
    if (node(b).is_const()) return Facts{.constant = true};
    if (node(b).op == Op::Variable || node(b).op == Op::Iota) return {};
    if (!opaque(b)) return facts_[b];
    const bool bytes = is_int(node(b).dtype) && size_bytes(node(b).dtype) == 1;
    return Facts{.loads = {b}, .full_loads = 1, .decodes = bytes, .packed = bytes};
  }

  // Forward over the graph: what must be realized because of how its consumer reads it.
  void cut_structure() {
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      const Node& n = node(i);
      if (is_leaf(i)) continue;
      if (is_movement(n.op)) {
        cut_below_movement(i);
        movement_hash_[i] = movement_hash(n);
        continue;
      }
      if (n.op == Op::Reduce && facts_of(source(i)).reduced) realize(p_.base(source(i)));
      if (is_alu(n.op)) cut_second_reduction(i);
      if (n.op == Op::Scatter) cut_below_scatter(i);
      facts_[i] = combine(i);
    }
  }

  // A kernel that stores by index walks its value in the index's order, as a reduction does not.
  // Where the order counts, each of a GPU's invocations goes through all of the index.
  void cut_below_scatter(uint32_t i) {
    const auto& arg = node(i).get<ScatterArg>();
    const bool single = node(i).src(1)->shape[size_t(arg.axis)] == 1;
    const bool ordered = arg.named == Named::Any && !single;
    for (size_t k = 1; k < 3; k++) {
      const uint32_t b = p_.base(source(i, k));
      if (opaque(b) || recomputed_always(b)) continue;
      const bool shares = target_of_(p_.device_of(i)).has_local;
      const bool again = ordered && k == 2 && shares;
      const bool costs = ordered && facts_[b].weight > kFreeDecode;
      // Of an index of one element there is no order.
      const bool sums = facts_[b].reduced && !(single && shares && k == 1);
      if (sums || costs || again) realize(b);
    }
  }

  // What is made of constants and counters alone knows no device to be stored on.
  bool recomputed_always(uint32_t i) const { return !node(i).device && !facts_[i].reduced; }

  // Bytes are decoded again: kernels do so once per vector or less, as long as one number serves
  // neighbours, and memory holds four times as much for what is decoded.
  uint32_t free_weight(uint32_t i) const {
    if (node(i).dtype == DType::Bool) return kFreeMask;
    return facts_[i].decodes ? kFreeDecode : kFreeWhenRepeated;
  }

  void cut_below_movement(uint32_t i) {
    const uint32_t b = p_.base(source(i));
    if (opaque(b)) return;
    const Facts& f = facts_[b];
    if (node(i).op == Op::Pad && f.reduced) realize(b);
    if (!repeats(node(i)) || recomputed_always(b)) return;
    if (inside_pick_[i] && !f.reduced) return;  // with one element only
    const bool nearly_free = f.loads.empty() ? f.weight <= 4 * kTranscendental
                                             : f.loads.size() == 1 && f.weight <= free_weight(b);
    const bool twice = f.packed && is_repeated(i, b, 2);
    if (!f.reduced && (nearly_free || twice || f.row || read_once(i, b))) return;
    realize_for_reader(b);
  }

  // Whether what one buffer gives is repeated so often at most. Blocks of bytes that are read twice
  // are decoded twice in less time than floats are stored and loaded; for a few vectors, in the
  // product. Of more a CPU stores them.
  bool is_repeated(uint32_t i, uint32_t b, int64_t most) const {
    const Shape &repeated = node(i).shape, &once = node(b).shape;
    return !is_symbolic(repeated) && facts_[b].loads.size() == 1 &&
           element_count(repeated) <= most * element_count(once);
  }

  // Whether its readers compute each element no more than once, or where that costs little: those
  // that pick some, and products of packed weights.
  bool read_once(uint32_t i, uint32_t b) const {
    int products = decoded_by_product(i, b) ? 0 : 1;
    return std::ranges::all_of(users_[i], [&](uint32_t u) {
      const std::optional<uint32_t> reader = below_passing(u);
      return reader && (picks_[*reader] || (is_factor(*reader) && products++ == 0));
    });
  }
  // Packed weights: a product decodes them into workgroup memory, or once for a few vectors, and
  // reads a fraction of the bytes that decoded ones have.
  bool decoded_by_product(uint32_t i, uint32_t b) const {
    const Facts& f = facts_[b];
    if (!f.packed || f.loads.empty() || f.loads.size() > kPackedLoads) return false;
    return f.weight <= kProductDecode && (target_of_(p_.device_of(b)).has_local || is_repeated(i, b, kThinProduct));
  }
  std::optional<uint32_t> only_user(uint32_t i) const {
    return users_[i].size() == 1 ? std::optional(users_[i][0]) : std::nullopt;
  }
  // The first that computes something else than another form of it.
  std::optional<uint32_t> below_passing(std::optional<uint32_t> u) const {
    while (u && (is_movement(node(*u).op) || node(*u).op == Op::Cast)) u = only_user(*u);
    return u;
  }
  bool is_factor(uint32_t i) const {
    if (node(i).op != Op::Mul) return false;
    const std::optional<uint32_t> u = below_passing(only_user(i));
    return u && node(*u).op == Op::Reduce && node(*u).get<ReduceArg>().op == Op::Add;
  }

  // A CPU's product that decodes weights has lanes along its sum, and what follows is computed
  // element by element: functions are a kernel of their own, of vectors.
  void cut_expensive_epilogues() {
    for (uint32_t i = uint32_t(p_.nodes.size()); i-- > 0;) {
      if (!p_.realized[i]) continue;
      uint32_t product = UINT32_MAX, most = 0;
      std::vector<uint32_t> work{i};
      std::unordered_set<uint32_t> seen;
      while (!work.empty()) {
        const uint32_t n = work.back();
        work.pop_back();
        if (decodes_along_sum(n)) product = n;
        if (is_alu(node(n).op)) most = std::max<uint32_t>(most, row(node(n).op).cost);
        if (node(n).op == Op::Reduce) continue;
        for (const uint32_t s : p_.sources(n))
          if (!opaque(s) && seen.insert(s).second) work.push_back(s);
      }
        if (product != UINT32_MAX && most >= kTranscendental) realize(product);
    }
  }
  bool decodes_along_sum(uint32_t i) const {
    if (node(i).op != Op::Reduce || !p_.device[i] || target_of_(*p_.device[i]).has_local)
      return false;
    const uint32_t product = p_.base(source(i));
    if (p_.realized[product] || node(product).op != Op::Mul) return false;
    return std::ranges::any_of(p_.sources(product), [&](uint32_t s) {
      while (is_movement(node(s).op) && !repeats(node(s))) s = source(s);
      return !opaque(p_.base(s)) && decoded_by_product(s, p_.base(s));
    });
  }

  // Where several reductions meet, the largest keeps the epilogue. Branches of one and the same
  // reduction may rejoin: its value is computed once.
  void cut_second_reduction(uint32_t i) {
    uint32_t keep = UINT32_MAX;
    for (uint32_t s : p_.sources(i)) {
      const uint32_t b = p_.base(s);
      if (opaque(b) || !facts_[b].reduced) continue;
      if (keep == UINT32_MAX || facts_[b].reduced > facts_[keep].reduced) keep = b;
    }
    for (uint32_t s : p_.sources(i)) {
      const uint32_t b = p_.base(s);
      if (opaque(b)) continue;
      const bool another = facts_[b].reduced && facts_[b].reduction != facts_[keep].reduction;
      if (another || facts_[b].depth >= kMaxDepth) realize(b);
    }
  }

  bool repeated_below(uint32_t i) const {
    while (is_movement(node(i).op) && !p_.realized[i]) {
      if (repeats(node(i))) return true;
      i = source(i);
    }
    return false;
  }

  // A row of bytes times the scales of its parts, as keys and values in blocks are picked.
  bool is_scaled_row(uint32_t i) const {
    const auto is_row = [&](uint32_t s) { return facts_of(s).row; };
    const auto of_bytes = [&](uint32_t s) {
      uint32_t b = p_.base(s);
      while (node(b).op == Op::Cast) b = p_.base(source(b));
      return size_bytes(node(b).dtype) == 1;
    };
    return node(i).op == Op::Mul && std::ranges::all_of(p_.sources(i), is_row) &&
           std::ranges::any_of(p_.sources(i), of_bytes);
  }

  // Whether a source has an element for kGroup or more of the node's, as scales of packed numbers.
  bool is_group(uint32_t source, const Node& n) const {
    return kGroup * element_count(node(p_.base(source)).shape) <= element_count(n.shape);
  }

  Facts combine(uint32_t i) const {
    const Node& n = node(i);
    Facts f{.constant = is_alu(n.op)};
    bool has_bytes = false, has_groups = false;
    for (uint32_t s : p_.sources(i)) {
      Facts g = facts_of(s);
      f.constant = f.constant && g.constant;
      if (g.reduced && repeated_below(s)) g.reduced = 0;  // cut_structure realizes it
      f.weight += std::min<uint32_t>(g.weight, 1u << 20);
      f.depth = std::max(f.depth, g.depth);
      f.decodes = f.decodes && g.decodes;
      const bool group = !g.packed && !g.reduced && is_group(s, n);
      f.packed = f.packed && (g.packed || group);
      has_bytes = has_bytes || (g.packed && !g.loads.empty());
      has_groups = has_groups || group;
      for (uint32_t b : g.loads) {
        if (f.loads.size() < kMaxLoads) add_once(f.loads, b);
      }
      if (g.reduced > f.reduced) {
        f.reduced = g.reduced;
        f.reduction = g.reduction;
      }
    }
    if (f.constant) return f;
    const int64_t elements = element_count(n.shape);
    for (uint32_t b : f.loads) f.full_loads += 2 * element_count(node(b).shape) > elements;
    f.row = is_pick(i) ? bool(row_pick(n))
                       : (n.op == Op::Cast && facts_of(source(i)).row) || is_scaled_row(i);
    f.weight += row(n.op).cost;
    f.depth++;
    f.packed = f.packed && n.op != Op::Reduce && (has_bytes || !has_groups);
    f.decodes = f.decodes && n.op != Op::Reduce &&
                (!is_float(n.dtype) || n.op == Op::Cast || n.op == Op::Bitcast);
    if (n.op == Op::Reduce && !is_pick(i)) {
      f.reduced = element_count(n.src(0)->shape);
      f.reduction = i;
    }
    return f;
  }

  // Forward, with facts that know what has been realized already: values that several kernels use.
  void cut_shared(bool reductions_only) {
    count_uses();
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      if (is_leaf(i) || !(is_alu(node(i).op) || node(i).op == Op::Reduce)) continue;
      facts_[i] = combine(i);
      if (recomputed_always(i) || (reductions_only && !facts_[i].reduced)) continue;
      if (p_.realized[i] || uses_[i].size() <= 1 || !branches(i) || cheaper_to_recompute(i)) continue;
      p_.realized[narrower(i)] = 1;
      facts_[i] = combine(i);
    }
  }

  // Backward: where each value is used, as (kernel, index transform) signatures.
  void count_uses() {
    uses_.assign(p_.nodes.size(), {});
    for (uint32_t i = uint32_t(p_.nodes.size()); i-- > 0;) {
      if (is_leaf(i)) continue;
      if (p_.realized[i] || node(i).op == Op::Assign) uses_[i].assign(1, mix(17, i));
      std::sort(uses_[i].begin(), uses_[i].end());
      if (is_pick(i)) {
        pass_all_uses(uses_[i], picked_by_[i]);
        continue;
      }
      for (size_t k = 0; k < p_.sources(i).size(); k++) {
        // Of a table of packed weights few rows are decoded again, all of which a product reads.
        const uint32_t s = source(i, k);
        if (k == 1 && picks_few_[i] && !p_.realized[i] && !facts_of(s).reduced) continue;
        pass_uses(i, s);
      }
    }
  }

  // Whether the uses part ways at this node. Where all users go to the same kernels, they part
  // later.
  bool branches(uint32_t i) const {
    while (users_[i].size() == 1 && is_movement(node(users_[i][0]).op) &&
           !p_.realized[users_[i][0]])
      i = users_[i][0];
    if (users_[i].size() <= 1) return false;
    return std::any_of(users_[i].begin(), users_[i].end(), [&](uint32_t u) {
      return p_.realized[u] || !is_alu(node(u).op) || uses_[u] != uses_[i];
    });
  }

  void pass_uses(uint32_t i, uint32_t s) {
    if (is_leaf(s)) return;
    const Op op = node(i).op;
    for (uint64_t u : uses_[i]) {
      if (is_movement(op)) u = mix(u, movement_hash_[i]);
      if (op == Op::Reduce) u = mix(u, i + 1000003ull);
      if (uses_[s].size() < kMaxUses) add_once(uses_[s], u);
    }
  }

  // An index is used where its element is.
  void pass_all_uses(const std::vector<uint64_t>& uses, uint32_t s) {
    for (uint64_t u : uses) {
      if (!is_leaf(s) && uses_[s].size() < kMaxUses) add_once(uses_[s], u);
    }
  }

  bool cheaper_to_recompute(uint32_t i) const {
    const Facts& f = facts_[i];
    if (f.reduced) return false;
    const uint64_t uses = uses_[i].size(), load = kMemoryPerElement;
    const uint64_t recompute = uses * (load * f.full_loads + f.weight);
    const uint64_t store = load * (f.full_loads + 1 + uses) + f.weight;
    return recompute <= store + load;
  }

  // What is stored for one reader is one more buffer for another that was looked at before and
  // reads the same memory besides. Each round stores something, so that there is a last one.
  void cut_to_buffer_limit() {
    while (cut_once()) {}
  }

  // Forward again, with the final decisions: sets of buffers per expression. True if more is
  // stored.
  bool cut_once() {
    bool cut = false;
    reads_.assign(p_.nodes.size(), {});
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      const Node& n = node(i);
      if (is_leaf(i) || is_movement(n.op) || n.op == Op::Loop || n.op == Op::CustomKernel ||
          !p_.device[i])
        continue;
      const size_t limit = std::max<size_t>(target_of_(*p_.device[i]).max_buffers, 1) - 1;
      reads_[i] = united_reads(i);
      while (reads_[i].size() > limit) {
        const uint32_t widest = widest_source(i);
        if (widest == UINT32_MAX) {
          fail<Unsupported>("a {} reads {} buffers, but a kernel on {} may have only {}",
                            name(n.op), reads_[i].size(), *p_.device[i], limit + 1);
        }
        p_.realized[widest] = 1;
        cut = true;
        reads_[i] = united_reads(i);
      }
    }
    return cut;
  }

  std::vector<uint32_t> united_reads(uint32_t i) const {
    std::vector<uint32_t> out;
    // The target is what they write; that of a Scatter is stored there by another call.
    const size_t first = node(i).op == Op::Assign || node(i).op == Op::Scatter ? 1 : 0;
    for (size_t k = first; k < p_.sources(i).size(); k++) {
      const uint32_t b = p_.base(source(i, k));
      if (node(b).is_const() || node(b).op == Op::Variable || node(b).op == Op::Iota) continue;
      std::vector<uint32_t> merged;
      const std::vector<uint32_t> self{b};
      const std::vector<uint32_t>& more = opaque(b) ? self : reads_[b];
      std::set_union(out.begin(), out.end(), more.begin(), more.end(), std::back_inserter(merged));
      out = std::move(merged);
    }
    return out;
  }

  uint32_t widest_source(uint32_t i) const {
    uint32_t widest = UINT32_MAX;
    size_t most = 1;
    for (uint32_t s : p_.sources(i)) {
      const uint32_t b = p_.base(s);
      if (opaque(b) || reads_[b].size() <= most) continue;
      most = reads_[b].size();
      widest = b;
    }
    return widest;
  }

  // A realized value is stored straight into the Storage it is assigned to, unless it is a sink
  // too. What is assigned to a part is computed by the kernel that stores it.
  void claim_assigns() {
    for (uint32_t i = 0; i < p_.nodes.size(); i++) {
      if (node(i).op != Op::Assign) continue;
      if (assigned_part(node(i))) {
        p_.stored_by[i] = int32_t(i);
        continue;
      }
      const uint32_t v = p_.position.at(strip_reshapes(node(i).src(1).get()));
      const bool free = p_.realized[v] && p_.stores_for[v] == kNone && p_.sink_number[v] == kNone &&
                        node(v).op != Op::Assign && node(v).op != Op::Again &&
                        node(v).op != Op::Loop && node(v).op != Op::CustomKernel &&
                        node(v).dtype == node(i).dtype;
      p_.stored_by[i] = int32_t(free ? v : i);
      if (free) p_.stores_for[v] = int32_t(i);
    }
  }

  FusePlan& p_;
  const TargetOf& target_of_;
  std::vector<Facts> facts_;
  std::vector<uint64_t> movement_hash_;
  std::vector<uint32_t> picked_by_;  // of a sum that is a load: its index
  std::vector<uint8_t> inside_pick_;
  std::vector<uint8_t> picks_;      // of a sum that loads what it picks: what chooses among all
  std::vector<uint8_t> picks_few_;  // and takes a small part of them
  std::vector<std::vector<uint64_t>> uses_;
  std::vector<std::vector<uint32_t>> users_;
  std::vector<std::vector<uint32_t>> reads_;
};

}  // namespace

FusePlan plan_fusion(std::vector<UOp> sinks, const TargetOf& target_of) {
  FusePlan plan;
  plan.sinks = std::move(sinks);
  Planner(plan, target_of).run();
  return plan;
}

}  // namespace tuff::sched
