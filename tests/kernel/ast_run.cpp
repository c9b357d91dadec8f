#include "kernel/ast_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/direct_run.h"
#include "ir/interpret.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::kernel::testing {

using namespace ir;
using ir::testing::run_direct;

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
  Buffers before = buffers;
  run_direct(ast, [&](const Node& index, int64_t element, bool write) {
    const Node* memory = without_after(index.src(0).get());
    const ParamArg& p = memory->get<ParamArg>();
    TUFF_CHECK(element >= 0 && element < p.count, "offset {} of {}", element, p.count);
    // What is loaded after iterations in their order is what these have stored.
    Buffers& all = write || memory != index.src(0).get() ? buffers : before;
    return all[size_t(p.slot)].data() + size_t(element) * size_bytes(index.dtype);
  });
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
  t.has_fast_shared = false;
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

Target matrix_cpu() {
  Target t = builtin_target("c-x86-64");
  t.identity = "matrix-cpu";
  t.cores = 2;
  t.l2_bytes = 8 << 10;
  t.matrix_shapes = {{16, 16, 32, DType::BF16, DType::BF16, DType::F32}};
  return t;
}

std::string refusal(const ir::UOp& ast, const Target& t, const std::vector<Opt>& opts) {
  try {
    Tiling tiling(ast, t);
    for (const Opt& o : opts) apply(tiling, o);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

void expect_refused(const UOp& ast, const Target& t, const std::vector<Opt>& opts,
                    const std::string& why) {
  EXPECT_NE(refusal(ast, t, opts).find(why), std::string::npos)
      << to_string(opts) << ": " << refusal(ast, t, opts);
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
