#include "kernel/analysis/coalescing.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/arith.h"
#include "base/split_mix.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "kernel/analysis/op_counts.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Where in the launch and in its loops a subgroup is looked at: shares of 8.
struct Place {
  int64_t group, subgroup, trip;
};
constexpr int64_t kWhole = 8;
constexpr Place kPlaces[] = {{0, 0, 0}, {4, 0, 4}, {4, 7, 3}, {7, 4, 7}};

// The integers that offsets and gates are computed from, for every lane of one subgroup.
class Subgroup {
 public:
  Subgroup(const LinearKernel& k, const Target& target, const Place& place)
      : k_(k), place_(place), values_(k.ops.size()) {
    for (size_t i = 0; i < k.ops.size(); i++) position_[k.ops[i].get()] = i;
    const int64_t workgroup = int64_t(k.local[0]) * k.local[1] * k.local[2];
    const int64_t width = std::max<int64_t>(target.subgroup_size, 1);
    first_ = ceil_div(workgroup, width) * place.subgroup / kWhole * width;
    lanes_ = std::min(width, workgroup - first_);
    find_needed();
    for (size_t i = 0; i < k.ops.size(); i++) {
      if (needed_[i]) compute(i);
    }
  }

  int64_t lanes() const { return lanes_; }
  // The byte that one instance of an access touches; -1 where its gate is closed.
  int64_t address(size_t access, int64_t instance, int64_t lane) {
    const Node& u = *k_.ops[access];
    const Node* index = without_after(u.src(0).get());
    const LaneMask mask = mask_of(access);
    if (index->src_count > 2 && !value(index->src(2), mask, instance, lane).as_bool()) return -1;
    return value(index->src(1), mask, instance, lane).as_int() * int64_t(size_bytes(index->dtype));
  }
  int64_t instances(size_t access) { return lane_count(k_, mask_of(access)); }

 private:
  LaneMask mask_of(size_t access) {
    return k_.lanes[access] | k_.lanes[position(k_.ops[access]->src(0))];
  }
  size_t position(const UOp& u) const { return position_.at(without_after(u.get())); }

  void find_needed() {
    needed_.assign(k_.ops.size(), false);
    for (size_t i = k_.ops.size(); i-- > 0;) {
      const Node& u = *k_.ops[i];
      if (accessed_memory(&u)) need(*without_after(u.src(0).get()));
      if (!needed_[i] || u.op == Op::Range) continue;
      if (u.op == Op::Load && without_after(u.src(0).get())->op != Op::Index) continue;
      need(u.op == Op::Load ? *without_after(u.src(0).get()) : u);
    }
  }
  // Sources that are values; memory is none.
  void need(const Node& u) {
    for (size_t s = u.op == Op::Index ? 1 : 0; s < u.src_count; s++)
      needed_[position(u.src(s))] = true;
  }

  void compute(size_t i) {
    const Node& u = *k_.ops[i];
    const int64_t count = lane_count(k_, k_.lanes[i]);
    values_[i].resize(size_t(count * lanes_));
    for (int64_t n = 0; n < count; n++) {
      for (int64_t lane = 0; lane < lanes_; lane++)
        values_[i][size_t(n * lanes_ + lane)] = computed(u, k_.lanes[i], n, lane);
    }
  }
  Scalar computed(const Node& u, LaneMask mask, int64_t n, int64_t lane) {
    const auto integer = [&](int64_t v) { return Scalar::of_int(u.dtype, v); };
    switch (u.op) {
      case Op::Const: return u.get<Scalar>();
      case Op::Variable: return integer(u.max);
      case Op::Special: return integer(coordinate(u, lane));
      case Op::Range:
        return integer(is_lane(kind_of(&u)) ? n : u.src(0)->max * place_.trip / kWhole);
      case Op::Load: return integer(loaded(u, mask, n, lane));
      default: break;
    }
    if (!is_alu(u.op)) return integer(0);
    std::vector<Scalar> src;
    for (const UOp& s : u.src()) src.push_back(value(s, mask, n, lane));
    return eval_scalar(u.op, u.dtype, src, word_of(u.arg));
  }
  int64_t loaded(const Node& load, LaneMask mask, int64_t n, int64_t lane) {
    const Node* index = without_after(load.src(0).get());
    if (index->op != Op::Index) return 0;
    return some_number_at(value(index->src(1), mask, n, lane).as_int());
  }
  int64_t coordinate(const Node& special, int64_t lane) const {
    const SpecialArg& s = special.get<SpecialArg>();
    if (s.space == 'g') return special.src(0)->max * place_.group / kWhole;
    int64_t invocation = first_ + lane;
    if (s.space == 's') return s.axis == 0 ? lane : first_ / std::max<int64_t>(lanes_, 1);
    for (int8_t axis = 0; axis < s.axis; axis++) invocation /= k_.local[size_t(axis)];
    return invocation % k_.local[size_t(s.axis)];
  }
  const Scalar& value(const UOp& u, LaneMask mask, int64_t n, int64_t lane) {
    const size_t at = position(u);
    return values_[at][size_t(project(mask, n, k_.lanes[at]) * lanes_ + lane)];
  }
  // The instance of `to` with the lane values of instance `n` of `from`, the lowest bit fastest.
  int64_t project(LaneMask from, int64_t n, LaneMask to) const {
    int64_t out = 0, stride = 1;
    for (size_t bit = 0; bit < k_.lane_ranges.size(); bit++) {
      const int64_t size = k_.lane_ranges[bit]->src(0)->max;
      const int64_t digit = from >> bit & 1 ? n % size : 0;
      if (from >> bit & 1) n /= size;
      if (to >> bit & 1) out += digit * stride, stride *= size;
    }
    return out;
  }

  const LinearKernel& k_;
  const Place place_;
  std::unordered_map<const Node*, size_t> position_;
  std::vector<bool> needed_;
  std::vector<std::vector<Scalar>> values_;
  int64_t first_ = 0, lanes_ = 1;
};

// Bytes that an access takes in one instance, per lane.
using Addresses = std::vector<int64_t>;

bool follows(const Addresses& a, const Addresses& b, int64_t bytes) {
  for (size_t lane = 0; lane < a.size(); lane++) {
    if ((a[lane] < 0) != (b[lane] < 0) || (a[lane] >= 0 && b[lane] != a[lane] + bytes)) return false;
  }
  return true;
}

constexpr int64_t kWordBytes = 4, kHalfWordBytes = 2;
bool is_aligned(const Addresses& addresses, int64_t bytes) {
  return std::ranges::all_of(addresses, [&](int64_t a) { return a < 0 || a % bytes == 0; });
}

// Narrow elements go together by whole words alone, bytes by one half of a word too.
int64_t taken_together(const Addresses& first, int64_t count, int64_t bytes, const Target& target) {
  const auto whole = int64_t(std::bit_floor(uint64_t(count)));
  if (bytes >= kWordBytes || (whole * bytes >= kWordBytes && is_aligned(first, kWordBytes)))
    return whole;
  const bool halves = target.features.storage16 && target.features.i16;
  const int64_t pair = kHalfWordBytes / bytes;
  return halves && whole >= pair && is_aligned(first, kHalfWordBytes) ? pair : 1;
}

class Counter {
 public:
  Counter(const LinearKernel& k, const Target& target) : k_(k), target_(target) {}

  KernelCoalescing run() {
    for (const Place& place : kPlaces) {
      Subgroup subgroup(k_, target_, place);
      for_each_op(k_, [&](size_t i, uint64_t times) {
        const Node* memory = accessed_memory(k_.ops[i].get());
        if (memory && memory->op == Op::Param) count(subgroup, i, double(times));
      });
    }
    return out_;
  }

 private:
  void count(Subgroup& subgroup, size_t i, double times) {
    const Node& u = *k_.ops[i];
    std::vector<Addresses> instances;
    for (int64_t n = 0; n < subgroup.instances(i); n++) {
      Addresses& a = instances.emplace_back();
      for (int64_t lane = 0; lane < subgroup.lanes(); lane++)
        a.push_back(subgroup.address(i, n, lane));
    }
    std::ranges::sort(instances);
    const auto repeated = std::ranges::unique(instances);
    instances.erase(repeated.begin(), repeated.end());
    const auto bytes = int64_t(size_bytes(without_after(u.src(0).get())->dtype));
    for (size_t begin = 0; begin < instances.size();) {
      int64_t n = 1;
      while (n < target_.elements_together(size_t(bytes)) &&
             begin + size_t(n) < instances.size() &&
             follows(instances[begin], instances[begin + size_t(n)], n * bytes))
        n++;
      n = taken_together(instances[begin], n, bytes, target_);
      add(u.op == Op::Store ? out_.stores : out_.loads, instances[begin], n * bytes, times);
      begin += size_t(n);
    }
  }
  static void add(Coalescing& to, const Addresses& addresses, int64_t bytes, double times) {
    std::set<int64_t> lines, places;
    for (const int64_t a : addresses) {
      if (a < 0) continue;
      places.insert(a);
      for (int64_t b = a / kMemoryLineBytes; b <= (a + bytes - 1) / kMemoryLineBytes; b++)
        lines.insert(b);
    }
    to.lines += times * double(lines.size());
    to.least += times * double(ceil_div(int64_t(places.size()) * bytes, kMemoryLineBytes));
  }

  const LinearKernel& k_;
  const Target& target_;
  KernelCoalescing out_;
};

}  // namespace

int64_t some_number_at(int64_t element) {
  constexpr int64_t kMost = 1 << 12;
  return SplitMix64(uint64_t(element)).below(kMost);
}

KernelCoalescing coalescing_of(const LinearKernel& k, const Target& target) {
  return Counter(k, target).run();
}

std::string to_string(const KernelCoalescing& c) {
  return fmt::format("loads {:.1f}, stores {:.1f}", c.loads.ratio(), c.stores.ratio());
}

}  // namespace tuff::kernel
