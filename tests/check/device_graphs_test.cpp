// Random graphs on every device of this machine, against the reference interpreter.
// TUFF_TEST_GRAPHS and TUFF_TEST_SEED widen or move the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/os.h"
#include "check/device_run.h"
#include "check/expected.h"
#include "engine/device.h"
#include "run_random.h"
#include "tensor/devices.h"

namespace tuff::check {
namespace {

uint64_t setting(const char* name, uint64_t usual) {
  const char* given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

class DeviceGraphs : public testing::TestWithParam<std::string> {};

TEST_P(DeviceGraphs, GiveTheInterpretersResults) {
  const std::string& device = GetParam();
  RandomOptions o;
  o.seed = setting("TUFF_TEST_SEED", 0);
  o.count = setting("TUFF_TEST_GRAPHS", 120);
  o.max_faults = 3;
  o.graphs.dtypes = supported_dtypes(engine::Device::get(device)->target());
  const RandomResult r = run_random(
      o, [&](std::span<const GraphCase> cases) { return check_on_device(cases, device); });
  for (const GraphFault& f : r.faults) ADD_FAILURE() << f.text();
  EXPECT_TRUE(r.graphs == o.count || !r.faults.empty());
}

TEST_P(DeviceGraphs, FloatsOf8Bits) {
  RandomOptions o;
  o.count = setting("TUFF_TEST_GRAPHS", 40);
  o.max_faults = 3;
  o.graphs.dtypes = {DType::F8E4M3FN, DType::F8E5M2, DType::F32,
                     DType::I32,      DType::U8,     DType::Bool};
  const RandomResult r = run_random(
      o, [&](std::span<const GraphCase> cases) { return check_on_device(cases, GetParam()); });
  for (const GraphFault& f : r.faults) ADD_FAILURE() << f.text();
  EXPECT_TRUE(r.graphs == o.count || !r.faults.empty());
}

// Minimal graphs of faults that random graphs found once.
TEST_P(DeviceGraphs, FormerFaultsStayMended) {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(TUFF_SOURCE_DIR "/tests/data/graphs"))
    files.push_back(e.path());
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    const GraphCase c = case_from_text(os::read_text(file.string()));
    EXPECT_EQ(check_on_device(std::span(&c, 1), GetParam()).at(0), "") << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceGraphs, testing::ValuesIn(test::devices()),
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
