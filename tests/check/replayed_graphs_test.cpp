// Random graphs with an axis of symbolic extent: captured once at one extent, replayed at others,
// held against the interpreter. Extents begin at 0, so that launches of no workgroups are among
// them. TUFF_TEST_GRAPHS and TUFF_TEST_SEED widen or move the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "check/expected.h"
#include "check/graph_check.h"
#include "check/random_graph.h"
#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"
#include "ir/walk.h"
#include "tensor/devices.h"

namespace tuff::check {
namespace {

uint64_t setting(const char* name, uint64_t usual) {
  const char* given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

std::vector<ir::UOp> variables_of(const GraphCase& c) {
  std::vector<ir::UOp> out;
  for (const ir::Node* n : ir::toposort(c.sinks)) {
    if (n->op == ir::Op::Variable) out.push_back(ir::UOp(n));
  }
  return out;
}

std::vector<std::byte> contents(engine::Buffer& b) {
  std::vector<std::byte> bytes(b.size_bytes());
  b.copyout(bytes.data());
  return bytes;
}

class ReplayedGraphs : public testing::TestWithParam<std::string> {
 protected:
  void check(const GraphCase& c) {
    const std::shared_ptr<engine::Device> device = engine::Device::get(GetParam());
    std::vector<Ref<engine::Buffer>> memory;
    const GraphCase there =
        placed(c, device->name(), [&](const ir::Storage& s) -> Ref<ir::Storage> {
          memory.push_back(engine::Buffer::make(device, s.dtype, s.count));
          for (const GraphInput& in : c.inputs) {
            if (in.storage->id == s.id && !in.bytes.empty()) memory.back()->copyin(in.bytes.data());
          }
          return memory.back();
        });
    std::vector<Ref<engine::Buffer>> sinks;
    engine::Capture capture;
    sinks = engine::realize(there.sinks, there.variables);
    const std::vector<ir::UOp> variables = variables_of(there);
    ASSERT_EQ(variables.size(), 1u);
    engine::CapturedGraph captured(capture.take(), {}, variables);
    const auto& v = variables[0]->get<ir::VariableArg>();
    const int64_t usual = c.variables.at(v.name);
    for (int64_t value : {v.max, v.min, (v.min + v.max) / 2, v.min + 1, usual}) {
      GraphCase at_value = c;
      at_value.variables[v.name] = value;
      captured.replay({}, {&value, 1});
      replays_++;
      RunOutput got;
      for (const Ref<engine::Buffer>& s : sinks) got.sinks.push_back(contents(*s));
      for (const GraphInput& in : c.inputs) got.storages[in.storage->id] = in.bytes;
      EXPECT_EQ(difference(at_value, got), "") << "seed " << c.seed << ", " << v.name << " = "
                                               << value << " (captured at " << usual << ")\n"
                                               << to_text(c);
    }
  }
  int replays_ = 0;
};

TEST_P(ReplayedGraphs, AtEveryExtentGiveTheInterpretersResults) {
  GraphOptions o;
  o.device = GetParam();
  o.dtypes = supported_dtypes(engine::Device::get(GetParam())->target());
  o.assigns = false;
  const uint64_t wanted = setting("TUFF_TEST_GRAPHS", 12);
  uint64_t graphs = 0;
  for (uint64_t seed = setting("TUFF_TEST_SEED", 0); graphs < wanted && !HasFailure(); seed++) {
    const GraphCase c = random_graph(seed, o);
    if (variables_of(c).empty()) continue;
    graphs++;
    check(c);
  }
  EXPECT_EQ(graphs, wanted);
  EXPECT_EQ(uint64_t(replays_), 5 * wanted);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplayedGraphs, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char ch) { return !isalnum(static_cast<unsigned char>(ch)); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace tuff::check
