// Seeded random tensor graphs, scheduled and run kernel by kernel on the host, against their direct
// meaning: movement in any order, masks, reductions inside and after each other, several sinks,
// assigns.
#include <gtest/gtest.h>

#include <random>

#include "ir/text.h"
#include "ir/walk.h"
#include "sched/host_run.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed, bool assigns, bool again = false)
      : rng_(seed), assigns_(assigns), again_(again) {
    for (int b = 0; b < 3; b++) add_buffer();
    const int steps = 3 + pick(14);
    for (int k = 0; k < steps; k++) step();
    const int sinks = 1 + pick(3);
    for (int k = 0; k < sinks; k++)
      sinks_.push_back(
          pool_[pool_.size() - 1 - size_t(pick(int(std::min<size_t>(pool_.size(), 6))))]);
    // A version that is stored is somebody's tensor: all of them are realized together.
    for (const UOp& v : current_) {
      if (v->op == Op::Assign) sinks_.push_back(v);
    }
  }
  const std::vector<UOp>& sinks() const { return sinks_; }
  const Contents& contents() const { return contents_; }

 private:
  int pick(int n) { return int(rng_() % uint32_t(n)); }

  void add_buffer() {
    static const std::vector<std::vector<int64_t>> shapes{{4, 6}, {2, 3, 4}, {6},
                                                          {1, 5}, {3, 1, 2}, {8, 3}};
    const auto& extents = shapes[size_t(pick(int(shapes.size())))];
    Shape shape(extents.begin(), extents.end());
    const UOp b = buffer(make_ref<Storage>("CPU", DType::I32, element_count(shape)));
    Values v;
    for (int64_t i = 0; i < element_count(shape); i++)
      v.push_back(Scalar::of_int(DType::I32, pick(19) - 9));
    contents_[b->get<Ref<Storage>>()->id] = v;
    pool_.push_back(reshape(b, shape));
    current_.push_back(pool_.back());
  }

  const UOp& any() { return pool_[size_t(pick(int(pool_.size())))]; }

  void step() {
    UOp u;
    if (again_ && pick(4) == 0) {
      pool_.push_back(make(Op::Again, DType::I32, {any(), any()}));
      return;
    }
    switch (pick(assigns_ ? 14 : 12)) {
      case 0:
      case 1:
      case 2: u = binary(); break;
      case 3: u = unary(); break;
      case 4:
      case 5: u = reduction(); break;
      case 6: u = reshaped(any()); break;
      case 7: u = permuted(any()); break;
      case 8: u = expanded(any()); break;
      case 9: u = padded(any()); break;
      case 10: u = shrunk(any()); break;
      case 11: u = pick(3) ? flipped(any()) : make(Op::Contiguous, DType::Void, {any()}); break;
      default: u = assigned(); break;
    }
    if (u && element_count(u->shape) <= 200) pool_.push_back(u);
  }

  UOp unary() {
    const UOp x = any();
    return pick(2) ? alu(Op::Neg, {x})
                   : cast(alu(Op::CmpLt, {x, constant(DType::I32, pick(5) - 2)}), DType::I32);
  }

  // Makes y's shape fit x's by reductions and repetition, else uses x twice.
  UOp binary() {
    const UOp x = any();
    UOp y = any();
    if (!(y->shape == x->shape)) y = fitted(y, x->shape);
    static const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Xor};
    if (pick(6) == 0)
      return where(alu(Op::CmpLt, {x, y}), y,
                   x->shape.empty() ? x : alu(Op::Add, {x, constant(DType::I32, 3)}));
    return alu(ops[pick(5)], {x, y});
  }

  UOp fitted(const UOp& y, const Shape& shape) {
    if (element_count(y->shape) == element_count(shape)) return reshape(y, shape);
    if (y->shape.size() == shape.size()) {
      IntVec axes;
      for (size_t i = 0; i < shape.size(); i++) {
        if (!(y->shape[i] == shape[i])) axes.push_back(int64_t(i));
      }
      return expand(reduce(pick(2) ? Op::Add : Op::Max, y, axes), shape);
    }
    IntVec all;
    for (size_t i = 0; i < y->shape.size(); i++) all.push_back(int64_t(i));
    return expand(reshape(reduce(Op::Add, y, all), Shape(shape.size(), Dim(1))), shape);
  }

  UOp reduction() {
    const UOp x = any();
    IntVec axes;
    for (size_t i = 0; i < x->shape.size(); i++) {
      if (pick(2)) axes.push_back(int64_t(i));
    }
    const Op op = pick(2) ? Op::Add : pick(2) ? Op::Max : Op::Mul;
    const UOp r = axes.empty() ? x : reduce(op, x, axes);
    return pick(2) ? r : expand(r, x->shape);
  }

  UOp reshaped(const UOp& x) {
    Shape s;
    int64_t rest = element_count(x->shape);
    for (int64_t f : {2, 3, 4}) {
      if (rest % f == 0 && pick(2)) {
        s.push_back(Dim(f));
        rest /= f;
      }
      if (pick(5) == 0) s.push_back(Dim(1));
    }
    s.insert(s.begin() + pick(int(s.size()) + 1), Dim(rest));
    return reshape(x, s);
  }
  UOp permuted(const UOp& x) {
    IntVec axes;
    for (size_t i = 0; i < x->shape.size(); i++) axes.push_back(int64_t(i));
    std::shuffle(axes.begin(), axes.end(), rng_);
    return permute(x, axes);
  }
  UOp expanded(const UOp& x) {
    Shape s = x->shape;
    const size_t at = size_t(pick(int(s.size()) + 1));
    s.insert(s.begin() + std::ptrdiff_t(at), Dim(1));
    const UOp r = reshape(x, s);
    s[at] = Dim(2 + pick(3));
    return expand(r, s);
  }
  UOp padded(const UOp& x) {
    Pairs p;
    for (size_t i = 0; i < x->shape.size(); i++) p.push_back({Dim(pick(3)), Dim(pick(3))});
    return pad(x, p);
  }
  UOp shrunk(const UOp& x) {
    Pairs p;
    for (const Dim& d : x->shape) {
      const int64_t b = pick(int(d.value())), e = b + 1 + pick(int(d.value() - b));
      p.push_back({Dim(b), Dim(e)});
    }
    return shrink(x, p);
  }
  UOp flipped(const UOp& x) {
    IntVec axes;
    for (size_t i = 0; i < x->shape.size(); i++) {
      if (pick(2)) axes.push_back(int64_t(i));
    }
    return flip(x, axes);
  }
  UOp assigned() {
    UOp& version = current_[size_t(pick(int(current_.size())))];
    if (pick(2)) return version = part_assigned(version);
    UOp value = pick(3) ? any() : alu(Op::Add, {version, constant(DType::I32, 1)});
    if (!(value->shape == version->shape)) value = fitted(value, version->shape);
    version = make(Op::Assign, DType::Void, {version, value});
    return version;
  }
  // To a part: any value, that part itself, or what lies elsewhere in the same memory.
  UOp part_assigned(const UOp& version) {
    const UOp part = shrunk(version), other = pick(2) ? part : flip(part, {0});
    if (part == version) return version;
    UOp value = pick(2) ? any() : alu(Op::Add, {other, constant(DType::I32, 1)});
    if (!pick(3)) value = shrunk(version);
    if (!(value->shape == part->shape)) value = fitted(value, part->shape);
    return make(Op::Assign, DType::Void, {version, value}, part->get<Pairs>());
  }

  std::mt19937 rng_;
  const bool assigns_, again_;
  std::vector<UOp> pool_, current_, sinks_;
  Contents contents_;
};

const Storage* storage_below(const Node* n) {
  while (n->op == Op::Assign || n->op == Op::Reshape) n = n->src(0).get();
  return n->get<Ref<Storage>>().get();
}

void check_seed(uint32_t seed, bool assigns, const TargetOf& target_of, bool again = false) {
  const RandomGraph g(seed, assigns, again);
  const Scheduled s = schedule(g.sinks(), target_of);
  const RunResult got = run_schedule(s, g.contents());
  TensorEvaluator want(g.contents());
  for (size_t k = 0; k < g.sinks().size(); k++) {
    const UOp& sink = g.sinks()[k];
    // A sink that is an overwritten version shares its Storage with the last one only if it is that
    // one.
    ASSERT_EQ(got.sinks[k], want.eval(sink)) << "seed " << seed << " sink " << k << "\n"
                                             << to_text(*s.schedule);
  }
  std::unordered_map<const Storage*, const Node*> last;
  for (const Node* n : toposort(g.sinks())) {
    if (n->op == Op::Assign) last[storage_below(n)] = n;
  }
  for (const auto& input : s.inputs) {
    auto it = last.find(input.get());
    const Values expected =
        it == last.end() ? g.contents().at(input->id) : want.eval(UOp(it->second));
    ASSERT_EQ(got.storages.at(input->id), expected)
        << "seed " << seed << " storage " << input->id << "\n"
        << to_text(*s.schedule);
  }
}

TEST(RandomGraphs, MeanWhatTheirKernelsCompute) {
  for (uint32_t seed = 0; seed < 1500; seed++) {
    check_seed(seed, false, host_target);
    if (HasFatalFailure()) return;
  }
}

TEST(RandomGraphs, AssignsKeepOldAndNewContentsApart) {
  for (uint32_t seed = 0; seed < 1500; seed++) {
    check_seed(100000 + seed, true, host_target);
    if (HasFatalFailure()) return;
  }
}

// What is read again is read under another name until the order is settled.
TEST(RandomGraphs, WhatIsReadAgainIsTheSame) {
  for (uint32_t seed = 0; seed < 1500; seed++) {
    check_seed(300000 + seed, seed % 2, host_target, true);
    if (HasFatalFailure()) return;
    const RandomGraph g(300000 + seed, seed % 2, true);
    for (const Call& c : schedule(g.sinks(), host_target).schedule->calls) {
      ASSERT_NE(c.kind, CallKind::Again) << "seed " << seed;
      // What a kernel writes it reads under the same name, if at all.
      for (size_t k = c.output_count; k < c.args.size(); k++)
        for (size_t w = 0; w < c.output_count; w++)
          ASSERT_NE(c.args[k], c.args[w]) << "seed " << seed;
    }
  }
}

Target few_buffers(uint32_t max_buffers) {
  Target t = host_target("CPU");
  t.max_buffers = max_buffers;
  return t;
}

TEST(RandomGraphs, FitFewBuffersPerKernel) {
  for (const uint32_t limit : {3u, 4u, 5u, 6u}) {
    const Target few = few_buffers(limit);
    const TargetOf target_of = [&](const std::string&) -> const Target& { return few; };
    for (uint32_t seed = 0; seed < 400; seed++) {
      SCOPED_TRACE(fmt::format("{} buffers", limit));
      check_seed(200000 + seed, seed % 2, target_of);
      if (HasFatalFailure()) return;
      const RandomGraph g(200000 + seed, seed % 2);
      for (const Call& c : schedule(g.sinks(), target_of).schedule->calls)
        ASSERT_LE(c.args.size(), limit) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tuff::sched::testing
