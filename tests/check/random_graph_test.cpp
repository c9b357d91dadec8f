// Random graphs: what the generator makes, and that scheduling and lowering keep its meaning.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/expectation.h"
#include "check/expected.h"
#include "check/suite.h"
#include "host_device.h"
#include "ir/walk.h"
#include "run_random.h"

namespace tuff::check {
namespace {

using namespace ir;

// How many graphs the host tests run; more of them: TUFF_TEST_GRAPHS.
uint64_t count_or(uint64_t usual) {
  const char* given = std::getenv("TUFF_TEST_GRAPHS");
  return given ? std::strtoull(given, nullptr, 10) : usual;
}
uint64_t first_seed() {
  const char* given = std::getenv("TUFF_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : 0;
}

// Elements by how much is demanded of them.
struct Demand {
  int64_t exact = 0, bounded = 0, unknown = 0;
  void add(const std::vector<double>& errors) {
    for (double e : errors) (e == 0 ? exact : e == kUnknownError ? unknown : bounded)++;
  }
};

// Without a device: schedule, lowering, interpreter.
auto host_runner(const HostDevice& device) {
  return [device](std::span<const GraphCase> cases) {
    std::vector<std::string> out;
    for (const GraphCase& c : cases) {
      HostDevice d = device;
      d.seed += c.seed;
      out.push_back(check_on_host(c, d));
    }
    return out;
  };
}

bool is_symbolic(const GraphCase& c) {
  for (const Node* n : toposort(c.sinks)) {
    for (const Dim& d : n->shape) {
      if (!d.is_const()) return true;
    }
  }
  return false;
}

TEST(RandomGraph, HasEveryOpAndDtype) {
  std::map<Op, int> ops;
  std::map<std::pair<Op, DType>, int> pairs;
  Demand demand;
  int symbolic = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    const GraphCase c = random_graph(seed, {});
    const Bindings bindings = bindings_of(c);
    Expectation want(bindings);
    for (const Node* n : toposort(c.sinks)) {
      ops[n->op]++;
      pairs[{n->op, n->dtype}]++;
    }
    symbolic += is_symbolic(c);
    for (const UOp& s : c.sinks) demand.add(want.errors(s));
  }
  for (size_t i = 0; i < op_rows().size(); i++) {
    // A Param stands for a Buffer in normalized graphs only; a Sink collects what is given apart.
    // A Variable stands in extents; as a value it is rare. What gradients ask for has tests of its
    // own (sched/random_graphs_test.cpp, tensor/autograd_function_test.cpp), and so have several devices
    // (tensor/shards_test.cpp) and users' kernels (tensor/kernel_test.cpp).
    constexpr Op elsewhere[] = {Op::Param, Op::Sink, Op::Mark, Op::Checkpoint,
                                Op::Again, Op::Rule, Op::Ruled, Op::Shards, Op::CustomKernel};
    const bool has_tests = std::ranges::find(elsewhere, Op(i)) != std::end(elsewhere);
    if (!(op_rows()[i].floors & kFloorTensor) || has_tests) continue;
    EXPECT_GE(ops[Op(i)], Op(i) == Op::Variable ? 5 : 90) << name(Op(i));
  }
  for (DType t : memory_dtypes()) {
    for (Op op : {Op::Buffer, Op::Cast, Op::Reduce, Op::Pad, Op::Where, Op::Assign, Op::Max})
      EXPECT_GE((pairs[{op, t}]), 20) << name(op) << " " << name(t);
  }
  EXPECT_GE(symbolic, 100);
  const double all = double(demand.exact + demand.bounded + demand.unknown);
  EXPECT_LE(double(demand.unknown), 0.03 * all);
  EXPECT_GE(double(demand.exact), 0.6 * all);
  RecordProperty("demand", fmt::format("{} exact, {} bounded, {} unknown", demand.exact,
                                       demand.bounded, demand.unknown));
}

TEST(RandomGraph, IsTheSameForTheSameSeed) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    // Storages are numbered through the process: the texts differ in that alone.
    const std::string a = to_text(random_graph(seed, {})), b = to_text(random_graph(seed, {}));
    EXPECT_EQ(to_text(case_from_text(a)).size(), to_text(case_from_text(b)).size());
    const std::string head_a = a.substr(0, a.find("\n%")), head_b = b.substr(0, b.find("\n%"));
    EXPECT_EQ(head_a, head_b);
  }
}

void check_host(const HostDevice& device, uint64_t count) {
  RandomOptions o;
  o.seed = first_seed();
  o.count = count_or(count);
  o.graphs.dtypes = supported_dtypes(device.target);
  const RandomResult r = run_random(o, host_runner(device));
  EXPECT_TRUE(r.graphs == o.count || !r.faults.empty());
  for (const GraphFault& f : r.faults) ADD_FAILURE() << f.text();
}

TEST(RandomGraph, HostCpu) { check_host({builtin_target("c-x86-64")}, 1000); }
TEST(RandomGraph, HostCpuWithoutOpts) {
  check_host({builtin_target("c-x86-64"), OptChoice::None}, 300);
}
TEST(RandomGraph, HostCpuWithRandomOpts) {
  check_host({builtin_target("c-x86-64"), OptChoice::Random}, 500);
}
TEST(RandomGraph, HostLavapipe) { check_host({builtin_target("spirv-lavapipe")}, 500); }
TEST(RandomGraph, HostLavapipeWithRandomOpts) {
  check_host({builtin_target("spirv-lavapipe"), OptChoice::Random}, 500);
}
// Subgroups, whose lanes hand each other sums, and launches beside each other.
TEST(RandomGraph, HostGpu) { check_host({builtin_target("aco-gfx1100")}, 200); }
TEST(RandomGraph, HostGpuWithRandomOpts) {
  check_host({builtin_target("aco-gfx1100"), OptChoice::Random}, 200);
}
TEST(RandomGraph, HostWithFourBuffersPerKernel) {
  HostDevice d{builtin_target("spirv-lavapipe")};
  d.target.max_buffers = 4;
  check_host(d, 500);
}

// ---- reduction to a minimal graph --------------------------------------------------------------

bool has_flip_of_pad(const GraphCase& c) {
  for (const Node* n : toposort(c.sinks)) {
    if (n->op == Op::Flip && n->src(0)->op == Op::Pad) return true;
  }
  return false;
}

TEST(ReduceGraph, KeepsOnlyWhatThePredicateNeeds) {
  int found = 0;
  for (uint64_t seed = 0; found < 10; seed++) {
    const GraphCase c = random_graph(seed, {});
    if (!has_flip_of_pad(c)) continue;
    found++;
    const Reduction r = reduce_graph(c, has_flip_of_pad);
    EXPECT_TRUE(r.finished);
    EXPECT_TRUE(has_flip_of_pad(r.graph));
    // Buffer, a reshape of it if it has several axes, Pad, Flip.
    EXPECT_LE(node_count(r.graph), 4) << to_text(r.graph);
    EXPECT_EQ(r.graph.sinks.size(), 1u);
    for (const Node* n : toposort(r.graph.sinks)) {
      EXPECT_LE(element_count(n->shape), 2) << to_text(r.graph);
    }
  }
}

// A lowering that takes maxima for sums.
UOp with_wrong_max(const UOp& ast) {
  return map_bottom_up(ast, [](const UOp& u) {
    const bool value = u->op == Op::Max && u->dtype == DType::I32;
    return value ? make(Op::Add, u->dtype, u->src()) : UOp();
  });
}

TEST(ReduceGraph, FindsAWrongLowering) {
  HostDevice broken{builtin_target("c-x86-64")};
  broken.rewrite = with_wrong_max;
  RandomOptions o;
  o.count = 2000;
  o.max_faults = 6;
  o.graphs.dtypes = {DType::I32, DType::F32, DType::Bool};
  o.graphs.loops = false;  // whose bodies are not taken apart
  const RandomResult r = run_random(o, host_runner(broken));
  ASSERT_EQ(r.faults.size(), o.max_faults);
  for (const GraphFault& f : r.faults) {
    const GraphCase& c = f.minimal.graph;
    EXPECT_TRUE(f.minimal.finished);
    // A maximum of two elements in memory, each with a reshape where the axes were several.
    EXPECT_LE(node_count(c), 5) << f.text();
    EXPECT_EQ(c.sinks[0]->op, Op::Max) << f.text();
    // What is printed fails when it is read again, and not on a lowering that is right.
    const GraphCase again = case_from_text(f.text());
    EXPECT_EQ(node_count(again), node_count(c));
    EXPECT_NE(check_on_host(again, broken), "") << f.text();
    EXPECT_EQ(check_on_host(again, {builtin_target("c-x86-64")}), "") << f.text();
  }
}

TEST(ChildRunner, TellsCrashHangAndDifferenceApart) {
  const GraphCase c = random_graph(1, {});
  const std::string folder = ::testing::TempDir();
  const auto run = [&](const std::string& script) {
    return child_runner({"/bin/sh", "-c", script, "sh"}, folder, 2'000'000'000)(c);
  };
  EXPECT_EQ(run("exit 0"), "");
  EXPECT_EQ(run("echo sink 0: wrong; exit 1"), "sink 0: wrong");
  EXPECT_EQ(run("kill -SEGV $$"), "crash: signal 11");
  EXPECT_EQ(run("sleep 60"), "hang");
  EXPECT_EQ(run("grep -q '^# seed 1$' \"$1\""), "");  // the file of the case is the last argument
}

TEST(RandomRun, KindsOfFailureAreToldApart) {
  EXPECT_EQ(failure_kind(""), "");
  EXPECT_EQ(failure_kind("sink 3: element [0] is 1 where 2 was expected"), "sink");
  EXPECT_EQ(failure_kind("exception: offset 9 outside buffer of 4"), "exception: offset ");
  EXPECT_EQ(failure_kind("crash: signal 11"), "crash:");
}

TEST(GraphCase, TextReadsBackAsTheSameGraph) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    const GraphCase c = random_graph(seed, {});
    const GraphCase again = case_from_text(to_text(c));
    ASSERT_EQ(node_count(again), node_count(c));
    ASSERT_EQ(again.inputs.size(), c.inputs.size());
    EXPECT_EQ(again.variables, c.variables);
    EXPECT_EQ(again.seed, seed);
    const Bindings a = bindings_of(c), b = bindings_of(again);
    Expectation want(a);
    Expectation got(b);
    for (size_t i = 0; i < c.sinks.size(); i++) {
      const HostArray x = want.value(c.sinks[i]), y = got.value(again.sinks[i]);
      EXPECT_EQ(x.shape, y.shape);
      if (!is_float(x.dtype)) {
        EXPECT_EQ(x.bytes, y.bytes);
      }
    }
  }
}

TEST(GraphCase, TextThatIsDamagedIsRefusedByName) {
  const std::string good = to_text(random_graph(3, {}));
  EXPECT_THROW(case_from_text(""), InvalidArgument);
  EXPECT_THROW(case_from_text(good.substr(0, good.size() / 2)), InvalidArgument);
  EXPECT_THROW(case_from_text("# values 0: 1 2\n" + good), InvalidArgument);
  EXPECT_THROW(case_from_text(good + "# values 99: 1\n"), InvalidArgument);
}

}  // namespace
}  // namespace tuff::check
