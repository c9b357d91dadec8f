// Random graphs: what the generator makes, and that scheduling and lowering keep its meaning.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "check/expectation.h"
#include "check/graph_check.h"
#include "check/random_graph.h"
#include "graph/walk.h"

namespace tuff::check {
namespace {

using namespace graph;

// How many graphs the host tests run; more of them: TUFF_TEST_GRAPHS.
uint64_t count_or(uint64_t usual) {
  const char* given = std::getenv("TUFF_TEST_GRAPHS");
  return given ? std::strtoull(given, nullptr, 10) : usual;
}
uint64_t first_seed() {
  const char* given = std::getenv("TUFF_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : 0;
}

TEST(RandomGraph, HasEveryOpAndDtype) {
  std::map<Op, int> ops;
  std::map<std::pair<Op, DType>, int> pairs;
  Expectation::Demand demand;
  for (uint64_t seed = 0; seed < 1500; seed++) {
    const GraphCase c = random_graph(seed, {});
    const Bindings bindings = bindings_of(c);
    Expectation want(bindings);
    for (const Node* n : toposort(c.sinks)) {
      ops[n->op]++;
      pairs[{n->op, n->dtype}]++;
    }
    for (const UOp& s : c.sinks) {
      const Expectation::Demand d = want.demand(s);
      demand.exact += d.exact, demand.bounded += d.bounded, demand.unknown += d.unknown;
    }
  }
  for (size_t i = 0; i < op_rows().size(); i++) {
    // A Param stands for a Buffer in normalized graphs only; a Sink collects what is given apart.
    if (!(op_rows()[i].floors & kFloorTensor) || Op(i) == Op::Param || Op(i) == Op::Sink) continue;
    EXPECT_GE(ops[Op(i)], 100) << name(Op(i));
  }
  for (DType t : storable_dtypes()) {
    for (Op op : {Op::Buffer, Op::Cast, Op::Reduce, Op::Pad, Op::Where, Op::Assign, Op::Max})
      EXPECT_GE((pairs[{op, t}]), 20) << name(op) << " " << name(t);
  }
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

void check_hosts(const HostDevice& device, uint64_t count) {
  GraphOptions options;
  options.dtypes = dtypes_of(device.target);
  int failures = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + count && failures < 5; seed++) {
    const GraphCase c = random_graph(seed, options);
    HostDevice d = device;
    d.seed = seed;
    const std::string why = check_on_host(c, d);
    if (why.empty()) continue;
    failures++;
    ADD_FAILURE() << why << "\n" << to_text(c);
  }
}

TEST(RandomGraph, HostCpu) { check_hosts({builtin_target("c-x86-64")}, count_or(1000)); }
TEST(RandomGraph, HostCpuRandomOpts) {
  check_hosts({builtin_target("c-x86-64"), OptChoice::Random}, count_or(300));
}
TEST(RandomGraph, HostLavapipe) { check_hosts({builtin_target("spirv-lavapipe")}, count_or(500)); }
TEST(RandomGraph, HostGeneric) { check_hosts({builtin_target("spirv-generic")}, count_or(500)); }

}  // namespace
}  // namespace tuff::check
