#include "render/linear_eval.h"

#include <unordered_map>

#include "ir/scalar_eval.h"
#include "render/lane_space.h"

namespace tuff::render {
namespace {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

const Node* strip(const ir::UOp& x) {
  const Node* n = x.get();
  while (n->op == Op::After) n = n->src(0).get();
  return n;
}

class Evaluation {
 public:
  Evaluation(const kernel::LinearKernel& k, std::vector<HostBuffer>& buffers,
             const std::vector<int32_t>& scalars, std::array<int64_t, 3> group)
      : k_(k), space_(k), buffers_(buffers), scalars_(scalars), group_(group) {
    invocations_ = static_cast<int>(k.local[0] * k.local[1] * k.local[2]);
    for (size_t i = 0; i < k.ops.size(); ++i) position_[k.ops[i].get()] = i;
    values_.resize(k.ops.size());
  }
  void run() { run(0, k_.ops.size()); }

 private:
  void run(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Node& u = *k_.ops[i];
      if (u.op == Op::Range && space_.bit_of(&u) < 0) {
        const size_t close = closing(i);
        const int64_t trips = get(&u.src(0), 0, 0, 0).as_int();
        for (int64_t n = 0; n < trips; ++n) {
          for (int inv = 0; inv < invocations_; ++inv) set(i, inv, 0, Scalar::of_int(u.dtype, n));
          run(i + 1, close);
        }
        i = close;
        continue;
      }
      for (int inv = 0; inv < invocations_; ++inv) step(i, inv);
    }
  }
  size_t closing(size_t range) const {
    for (size_t i = range + 1; i < k_.ops.size(); ++i)
      if (k_.ops[i]->op == Op::End && k_.ops[i]->src(0) == k_.ops[range]) return i;
    TUFF_CHECK(false, "a loop without end");
    return 0;
  }
  void set(size_t i, int inv, int instance, const Scalar& v) {
    auto& slots = values_[i];
    const int count = space_.count(k_.lanes[i]);
    slots.resize(static_cast<size_t>(count) * invocations_);
    slots[static_cast<size_t>(inv) * count + instance] = v;
  }
  Scalar& slot(const Node* n, LaneMask mask, int inv, int instance) {
    const size_t at = position_.at(n);
    const int count = space_.count(k_.lanes[at]);
    TUFF_CHECK(!values_[at].empty(), "op {} ({}) has no value", at, ir::name(n->op));
    return values_[at]
                  [static_cast<size_t>(inv) * count + space_.project(mask, instance, k_.lanes[at])];
  }
  Scalar get(const ir::UOp* u, LaneMask mask, int inv, int instance) {
    return slot(strip(*u), mask, inv, instance);
  }

  void step(size_t i, int inv) {
    const Node& u = *k_.ops[i];
    LaneMask mask = k_.lanes[i];
    if (u.op == Op::Store) mask |= k_.lanes[position_.at(strip(u.src(0)))];
    for (int n = 0; n < space_.count(mask); ++n) {
      switch (u.op) {
        case Op::Const: set(i, inv, n, u.get<Scalar>()); break;
        case Op::Range: set(i, inv, n, Scalar::of_int(u.dtype, n)); break;
        case Op::Variable: set(i, inv, n, Scalar::of_int(u.dtype, scalar_of(u))); break;
        case Op::Special: set(i, inv, n, Scalar::of_int(u.dtype, coordinate(u, inv))); break;
        case Op::Register: set(i, inv, n, Scalar{u.dtype, 0}); break;
        case Op::Shared:
          if (inv == 0)
            shared_[&u].assign(u.get<ir::SharedArg>().count * size_bytes(u.dtype), 0);
          break;
        case Op::Load: load(i, inv, n); break;
        case Op::Store: store(u, mask, inv, n); break;
        case Op::Reduce: reduce(i, inv, n); break;
        default:
          if (ir::is_alu(u.op)) alu(i, inv, n);
      }
    }
  }
  int32_t scalar_of(const Node& u) const {
    for (size_t n = 0; n < k_.variables.size(); ++n)
      if (k_.variables[n].get() == &u) return scalars_.at(n);
    TUFF_CHECK(false, "unbound variable");
    return 0;
  }
  int64_t coordinate(const Node& u, int inv) const {
    const auto& s = u.get<ir::SpecialArg>();
    if (s.space == 'g') return group_[s.axis];
    const int l[3] = {static_cast<int>(inv % k_.local[0]),
                      static_cast<int>(inv / k_.local[0] % k_.local[1]),
                      static_cast<int>(inv / (k_.local[0] * k_.local[1]))};
    return l[s.axis];
  }
  uint8_t* address(const Node& index, LaneMask mask, int inv, int n) {
    if (index.src_count > 2 && !get(&index.src(2), mask, inv, n).as_bool()) return nullptr;
    const Node* memory = strip(index.src(0));
    HostBuffer& bytes = memory->op == Op::Shared ? shared_.at(memory)
                                                 : buffers_.at(memory->get<ir::ParamArg>().slot);
    const int64_t at = get(&index.src(1), mask, inv, n).as_int();
    const int64_t size = static_cast<int64_t>(size_bytes(index.dtype));
    TUFF_CHECK(at >= 0 && (at + 1) * size <= static_cast<int64_t>(bytes.size()),
               "access out of bounds: {}", at);
    return bytes.data() + at * size;
  }
  void load(size_t i, int inv, int n) {
    const Node& u = *k_.ops[i];
    const Node* from = strip(u.src(0));
    if (from->op == Op::Register) return set(i, inv, n, slot(from, k_.lanes[i], inv, n));
    const uint8_t* p = address(*from, k_.lanes[i], inv, n);
    set(i, inv, n, p ? load_scalar(u.dtype, p) : Scalar{u.dtype, 0});
  }
  void store(const Node& u, LaneMask mask, int inv, int n) {
    const Node* to = strip(u.src(0));
    const Scalar v = get(&u.src(1), mask, inv, n);
    if (to->op == Op::Register) {
      slot(to, mask, inv, n) = v;
      return;
    }
    if (uint8_t* p = address(*to, mask, inv, n)) store_scalar(v, p);
  }
  void reduce(size_t i, int inv, int n) {
    const Node& u = *k_.ops[i];
    const Node* source = strip(u.src(0));
    const LaneMask all = k_.lanes[position_.at(source)], folded = all & ~k_.lanes[i];
    Scalar out;
    for (int f = 0; f < space_.count(folded); ++f) {
      const int at = space_.project(k_.lanes[i], n, all, folded, f);
      const Scalar x = slot(source, all, inv, at);
      const Scalar pair[2] = {out, x};
      out = f == 0 ? x : ir::eval_scalar(u.get<ir::ReduceArg>().op, u.dtype, pair);
    }
    set(i, inv, n, out);
  }
  void alu(size_t i, int inv, int n) {
    const Node& u = *k_.ops[i];
    std::vector<Scalar> x;
    for (const ir::UOp& s : u.src()) x.push_back(get(&s, k_.lanes[i], inv, n));
    const int64_t word = std::holds_alternative<int64_t>(u.arg) ? u.get<int64_t>() : 0;
    set(i, inv, n, ir::eval_scalar(u.op, u.dtype, x, word));
  }

  const kernel::LinearKernel& k_;
  LaneSpace space_;
  std::vector<HostBuffer>& buffers_;
  const std::vector<int32_t>& scalars_;
  std::array<int64_t, 3> group_;
  int invocations_ = 1;
  std::unordered_map<const Node*, size_t> position_;
  std::vector<std::vector<Scalar>> values_;
  std::unordered_map<const Node*, HostBuffer> shared_;
};

}  // namespace

void evaluate(const kernel::LinearKernel& k, std::vector<HostBuffer>& buffers,
              const std::vector<int32_t>& scalars) {
  for (int64_t z = 0; z < k.groups[2].value(); ++z)
    for (int64_t y = 0; y < k.groups[1].value(); ++y)
      for (int64_t x = 0; x < k.groups[0].value(); ++x)
        Evaluation(k, buffers, scalars, {x, y, z}).run();
}

}  // namespace tuff::render
