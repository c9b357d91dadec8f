// What the text of the AMDGPU dialect computes, by running it on the host (workitem_run.h).
#include <gtest/gtest.h>

#include "render/amdgpu_runs.h"
#include "render/workitem_run.h"

namespace tuff::render {
namespace {

TEST(RenderAmdgpuRun, ShapesMeanTheSame) {
  for (const char* name : {"amdgpu-gfx1030", "amdgpu-gfx1100", "amdgpu-gfx1200", "amdgpu-gfx942"})
    expect_shapes(builtin_target(name), on_the_host);
}

TEST(RenderAmdgpuRun, EveryOpOfEveryDtype) {
  expect_every_op_of_every_dtype(builtin_target("amdgpu-gfx1100"), on_the_host);
}

TEST(RenderAmdgpuRun, HandMadeLists) {
  expect_hand_made_lists(builtin_target("amdgpu-gfx1100"), on_the_host);
}

}  // namespace
}  // namespace tuff::render
