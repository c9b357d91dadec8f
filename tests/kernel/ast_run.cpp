#include "kernel/ast_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpret.h"
#include "graph/kept_rows.h"
#include "graph/scalar_eval.h"
#include "graph/walk.h"
#include "kernel/lower/ranges.h"

namespace tuff::kernel::testing {

using namespace graph;

namespace {

class AstRun {
 public:
  AstRun(const UOp& ast, Buffers& buffers) : deps_(ast), buffers_(buffers), before_(buffers) {}

  void loop(const UOp& end, size_t k) {
    if (k < end->src_count) {
      const Node* r = end->src(k).get();
      for (int64_t i = 0; i < eval(r->src(0).get()).as_int(); i++) {
        ranges_[r] = i;
        loop(end, k + 1);
      }
      return;
    }
    memo_.clear();
    const Node* index = end->src(0)->src(0).get();
    const Scalar v = eval(end->src(0)->src(1).get());
    if (gate(index)) store_scalar(v, place(buffers_, index));
  }

 private:
  bool gate(const Node* index) {
    return index->src_count < 3 || eval(index->src(2).get()).as_bool();
  }
  std::byte* place(Buffers& all, const Node* index) {
    const ParamArg& p = index->src(0)->get<ParamArg>();
    const int64_t at = eval(index->src(1).get()).as_int();
    TUFF_CHECK(at >= 0 && at < p.count, "offset {} of {}", at, p.count);
    return all[size_t(p.slot)].data() + size_t(at) * size_bytes(index->dtype);
  }

  // Memoized until a range changes.
  Scalar eval(const Node* n) {
    if (n->op == Op::Const) return n->get<Scalar>();
    if (n->op == Op::Range) return Scalar::of_int(DType::Index, ranges_.at(n));
    if (const auto it = memo_.find(n); it != memo_.end()) return it->second;
    const Scalar v = compute(n);
    memo_[n] = v;
    return v;
  }
  Scalar compute(const Node* n) {
    if (n->op == Op::Load) {
      const Node* index = n->src(0).get();
      return gate(index) ? load_scalar(n->dtype, place(before_, index)) : Scalar{n->dtype, 0};
    }
    if (n->op == Op::Reduce) {
      // A reduction's value depends on the ranges open around it alone.
      std::vector<int64_t> key;
      for (const UOp& r : deps_.list(deps_.of(UOp(n)))) key.push_back(ranges_.at(r.get()));
      if (const auto it = reduced_.find({n, key}); it != reduced_.end()) return it->second;
      const DType acc = is_float(n->dtype) ? accumulator(n->dtype) : n->dtype;
      Scalar sum = reduce_identity(n->get<ReduceArg>().op, acc);
      fold(n, 1, sum);
      return reduced_[{n, key}] = sum.cast(n->dtype);
    }
    std::vector<Scalar> src;
    for (const UOp& s : n->src()) src.push_back(eval(s.get()));
    const int64_t* word = std::get_if<int64_t>(&n->arg);
    return eval_scalar(n->op, n->dtype, src, word ? *word : 0);
  }
  void fold(const Node* n, size_t k, Scalar& sum) {
    if (k == n->src_count) {
      const auto outer = std::exchange(memo_, {});
      const Scalar pair[2] = {sum, eval(n->src(0).get()).cast(sum.dtype)};
      sum = eval_scalar(n->get<ReduceArg>().op, sum.dtype, pair);
      memo_ = outer;
      return;
    }
    const Node* r = n->src(k).get();
    for (int64_t i = 0; i < r->src(0)->const_int(); i++) {
      ranges_[r] = i;
      fold(n, k + 1, sum);
    }
  }

  RangeDeps deps_;
  std::map<std::pair<const Node*, std::vector<int64_t>>, Scalar> reduced_;
  Buffers& buffers_;
  Buffers before_;
  std::unordered_map<const Node*, int64_t> ranges_;
  std::unordered_map<const Node*, Scalar> memo_;
};

}  // namespace

Buffers random_buffers(const UOp& ast, uint32_t seed) {
  std::mt19937 random(seed);
  Buffers out;
  std::map<int32_t, const Node*> params;
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Param) params[n->get<ParamArg>().slot] = n;
  }
  for (const auto& [slot, p] : params) {
    out.resize(std::max(out.size(), size_t(slot) + 1));
    const size_t size = size_bytes(p->dtype);
    Buffer& b = out[size_t(slot)];
    b.resize(size_t(p->get<ParamArg>().count) * size);
    for (size_t i = 0; i < b.size(); i += size) {
      const Scalar v = is_float(p->dtype)
                           ? Scalar::of_double(p->dtype, double(random() % 4097) / 1024 - 2)
                           : Scalar::of_int(p->dtype, int64_t(random() % 7));
      store_scalar(v, b.data() + i);
    }
  }
  return out;
}

void run_ast(const UOp& ast, Buffers& buffers) {
  const UOp direct = without_kept_rows(ast);
  AstRun run(direct, buffers);
  for (const UOp& end : direct->src()) run.loop(end, 1);
}

void run_linear(const LinearKernel& k, Buffers& buffers) {
  LinearRun run;
  std::vector<size_t> sizes;
  for (Buffer& b : buffers) {
    sizes.push_back(b.size());
    b.resize((b.size() + 3) & ~size_t{3});  // memory ends at a whole word, as on devices
    run.buffers.emplace_back(b);
  }
  for (size_t i = 0; i < 3; i++) {
    run.groups[i] = uint32_t(k.groups[i].value());
    run.local[i] = k.local[i];
  }
  run.subgroup_size = k.subgroup_size;
  interpret_linear(k.ops, run);
  for (size_t i = 0; i < buffers.size(); i++) buffers[i].resize(sizes[i]);
}

void expect_same(const UOp& ast, const LinearKernel& k, double tolerance, const std::string& what,
                 void (*run)(const LinearKernel& k, Buffers& buffers)) {
  // Tests compare many versions of one kernel in turn.
  static struct {
    UOp ast;
    Buffers start, expected;
  } last;
  if (!(last.ast == ast)) {
    last = {ast, random_buffers(ast, 7), {}};
    last.expected = last.start;
    run_ast(ast, last.expected);
  }
  const Buffers& expected = last.expected;
  Buffers got = last.start;
  run(k, got);
  std::map<int32_t, DType> dtypes;
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Param) dtypes[n->get<ParamArg>().slot] = n->dtype;
  }
  for (size_t slot = 0; slot < expected.size(); slot++) {
    const DType t = dtypes[int32_t(slot)];
    for (size_t i = 0; i < expected[slot].size(); i += size_bytes(t)) {
      const double a = load_scalar(t, expected[slot].data() + i).as_double();
      const double b = load_scalar(t, got[slot].data() + i).as_double();
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * (1 + std::abs(a))) continue;
      ADD_FAILURE() << what << ": slot " << slot << " element " << i / size_bytes(t) << ": " << b
                    << ", expected " << a << "\n"
                    << to_text(k);
      return;
    }
  }
}

Target small_gpu() {
  Target t = builtin_target("spirv-lavapipe");
  t.max_invocations = 16;
  t.max_local = {8, 4, 2};
  t.max_groups = {3, 2, 2};
  t.shared_bytes = 256;
  return t;
}

Target matrix_gpu() {
  Target t = builtin_target("spirv-lavapipe");
  t.identity = "matrix-gpu";
  t.load_cost = 1;
  t.component_bytes = 4;
  t.texel_load_cost = 0;
  t.max_loop_trips = 0;
  t.cores = 4;
  t.features.known_zero_products = true;
  t.matrix_shapes = {{16, 16, 16, DType::F16, DType::F16, DType::F32},
                     {8, 8, 16, DType::F16, DType::F16, DType::F32},
                     {16, 8, 16, DType::BF16, DType::BF16, DType::F32},
                     {8, 8, 32, DType::I8, DType::I8, DType::I32},
                     {16, 16, 16, DType::U8, DType::U8, DType::I32}};
  return t;
}

std::vector<NamedTarget> test_targets() {
  std::vector<NamedTarget> out;
  for (const char* name : {"c-x86-64", "spirv-lavapipe", "spirv-generic"})
    out.push_back({name, builtin_target(name)});
  Target avx = builtin_target("c-x86-64");
  avx.vector_bytes = 32;
  avx.cores = 4;
  out.push_back({"c-avx2-4", avx});
  out.push_back({"small-gpu", small_gpu()});
  return out;
}

}  // namespace tuff::kernel::testing
