#include "language/experts.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "engine/device.h"
#include "language/feed_forward.h"
#include "sched/parts.h"

namespace tuff::language {
namespace {

// What it takes to get at a weight of an expert, in multiplications by it: to read it, to copy its
// block and read that, and to decode it into memory (bench/results/experts-2026-11-30.md).
constexpr int64_t kReadCost = 8, kCopyCost = 16, kDecodeCost = 40;
constexpr int64_t kMostHeight = 128;
// Copies of blocks take memory: no more than so many times that of the experts.
constexpr int64_t kMostCopies = 2;

// The experts of each row and how much each of them counts, (rows, used).
struct Chosen {
  Tensor weights, experts;
};
Chosen chosen_by_router(const Config& c, const Experts& e, const Tensor& x) {
  const auto [weights, experts] = x.linear(e.router).softmax(-1).topk(c.experts_used);
  if (!c.normalizes_experts) return {weights, experts};
  return {weights / weights.sum({-1}, true), experts};
}

// Of one row: of the packed weights those of the chosen experts are read.
Tensor one_by_one(const Config& c, const Experts& e, const Tensor& x, const Chosen& by) {
  Tensor sum;
  for (int64_t i = 0; i < c.experts_used; i++) {
    const Tensor expert = by.experts.select(1, i);  // (1)
    const Tensor hidden = activated(c, e.gate.of_one(x, expert)) * e.up.of_one(x, expert);
    const Tensor y = e.down.of_one(hidden, expert) * by.weights.narrow(1, i, 1);
    sum = sum.defined() ? sum + y : y;
  }
  return sum;
}

// Every expert computes every row.
Tensor by_all(const Config& c, const Experts& e, const Tensor& x, const Chosen& by) {
  const Tensor in = x.unsqueeze(0);
  const Tensor hidden = activated(c, e.gate.of_all(in)) * e.up.of_all(in);
  const Tensor counts =
      (by.experts.one_hot(c.experts).to(DType::F32) * by.weights.unsqueeze(-1)).sum({1});
  return (e.down.of_all(hidden) * counts.transpose(0, 1).unsqueeze(-1)).sum({0});
}

// Rows in tiles, those of a tile for one expert: each expert's rows in their order, from the
// beginning of a tile on.
struct Tiles {
  Tensor experts;  // (tiles)
  Tensor rows;     // (tiles * height); the first one where a tile has none left
  Tensor places;   // (rows * used): where the products for each row's choices stand among those
};
Tiles tiles_of(const Config& c, const Tensor& experts, int64_t height) {
  const int64_t rows = int64_t(experts.size(0)), used = c.experts_used;
  const int64_t tiles = most_tiles(rows * used, c.experts, height);
  const TensorOptions here{.dtype = DType::I32, .device = experts.device()};
  const Tensor wanted = experts.one_hot(c.experts).to(DType::I32).sum({1});  // (rows, experts)
  const Tensor before = wanted.cumsum(0) - wanted;  // rows of the same expert
  const Tensor count = (wanted.sum({0}) + (height - 1)).floor_divide(height);
  const Tensor end = count.cumsum(0);
  const Tensor first = ((end - count) * height).index_select(0, experts.flatten());
  const Tensor places = first + before.gather(1, experts).flatten();
  const Tensor tile = Tensor::arange(0, tiles, 1, here).unsqueeze(1);
  const Tensor of_tile = (end.unsqueeze(0) <= tile).to(DType::I32).sum({1});
  const Tensor row = Tensor::arange(0, rows, 1, here).unsqueeze(1).expand({rows, used}).flatten();
  return {of_tile.clamp(0, c.experts - 1),
          Tensor::zeros({tiles * height}, here).scatter(0, places, row), places};
}

Tensor by_tiles(const Config& c, const Experts& e, const Tensor& x, const Chosen& by,
                const ExpertPlan& plan) {
  const int64_t rows = int64_t(x.size(0)), used = c.experts_used;
  const Tiles t = tiles_of(c, by.experts, plan.height);
  const auto product = [&](const Tensor& in, const ExpertMaps& maps) {
    return maps.of_some(in, t.experts, plan.decoded);
  };
  const Tensor in = x.index_select(0, t.rows).reshape({-1, plan.height, c.width});
  const Tensor hidden = activated(c, product(in, e.gate)) * product(in, e.up);
  const Tensor y = product(hidden, e.down).reshape({-1, c.width}).index_select(0, t.places);
  return (y.reshape({rows, used, c.width}) * by.weights.unsqueeze(-1)).sum({1});
}

bool is_group(const std::string& device) { return device.find(',') != device.npos; }

ExpertPlan plan_of(const Config& c, const Experts& e, const Tensor& x) {
  const std::string device = x.device();
  if (!x.size(0).is_number() || is_group(device)) return {};
  const int64_t rows = int64_t(x.size(0));
  if (rows > 1 && is_grad_enabled()) return {};
  return plan_experts({.rows = rows,
                       .experts = c.experts,
                       .used = c.experts_used,
                       .packed = !e.up.type.empty(),
                       .decodes_in_products = engine::Device::get(device)->target().has_local});
}

}  // namespace

// All tiles but the last one of an expert are full.
int64_t most_tiles(int64_t choices, int64_t experts, int64_t height) {
  const int64_t busy = std::min(experts, choices);
  return busy + (choices - busy) / height;
}

ExpertPlan plan_experts(const ExpertCall& s) {
  if (s.rows == 1) return {ExpertPlan::Way::One};
  const auto decodes = [&](int64_t rows) {
    return s.packed && !s.decodes_in_products && rows > sched::kThinProduct;
  };
  ExpertPlan best;
  int64_t least = s.experts * ((decodes(s.rows) ? kDecodeCost : kReadCost) + s.rows);
  const int64_t highest = std::min(kMostHeight, int64_t(std::bit_ceil(uint64_t(s.rows))));
  for (int64_t height = 1; height <= highest; height *= 2) {
    const int64_t tiles = most_tiles(s.rows * s.used, s.experts, height);
    const bool decoded = decodes(height), copied = s.packed && !decoded;
    if (copied && tiles > kMostCopies * s.experts) continue;
    const int64_t cost = (decoded ? s.experts * kDecodeCost : 0) +
                         tiles * ((copied ? kCopyCost : kReadCost) + height);
    if (cost >= least) continue;
    least = cost, best = {ExpertPlan::Way::Tiles, height, decoded};
  }
  return best;
}

Tensor mixture_by(const ExpertPlan& plan, const Config& c, const Experts& e, const Tensor& x) {
  const Chosen by = chosen_by_router(c, e, x);
  switch (plan.way) {
    case ExpertPlan::Way::One: return one_by_one(c, e, x, by);
    case ExpertPlan::Way::Tiles: return by_tiles(c, e, x, by, plan);
    case ExpertPlan::Way::All: break;
  }
  return by_all(c, e, x, by);
}

Tensor mixture(const Config& c, const Experts& e, const Tensor& x) {
  const Tensor y = mixture_by(plan_of(c, e, x), c, e, x);
  if (!e.shared_gate.weight.defined()) return y;
  const Tensor shared = gated(c, e.shared_gate, e.shared_up, e.shared_down, x);
  return y + shared * x.linear(e.shared_router.unsqueeze(0)).sigmoid();
}

}  // namespace tuff::language
