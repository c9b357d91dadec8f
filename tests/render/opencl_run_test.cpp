// What the text of the dialect of OpenCL C computes, with its own prelude, by running it on the
// host (workitem_run.h): with halves as a type, which no software driver has, and as bits.
#include <gtest/gtest.h>

#include "render/amdgpu_runs.h"
#include "render/workitem_run.h"

namespace tuff::render {
namespace {

Target with_halves(bool halves) {
  Target t = builtin_target("opencl-generic");
  t.features.f64 = t.features.sqrt = true;
  t.features.f16 = halves;
  return t;
}

class OpenclRun : public testing::TestWithParam<bool> {};

TEST_P(OpenclRun, ShapesMeanTheSame) { expect_shapes(with_halves(GetParam()), on_the_host); }

TEST_P(OpenclRun, EveryOpOfEveryDtype) {
  expect_every_op_of_every_dtype(with_halves(GetParam()), on_the_host);
}

TEST_P(OpenclRun, HandMadeLists) { expect_hand_made_lists(with_halves(GetParam()), on_the_host); }

INSTANTIATE_TEST_SUITE_P(Halves, OpenclRun, testing::Bool(),
                         [](const auto& info) { return info.param ? "AreAType" : "AreBits"; });

}  // namespace
}  // namespace tuff::render
