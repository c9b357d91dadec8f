// What the text of the AMDGPU dialect computes, by running it on the host (workitem_run.h).
#include <gtest/gtest.h>

#include "render/amdgpu_runs.h"
#include "render/workitem_run.h"

namespace tuff::render {
namespace {

class HostRunner : public KernelRunner {
 public:
  HostRunner(std::span<const Source> sources, const Target& t) : run_(sources, t) {}
  void run(const Source& source, std::span<const std::span<uint8_t>> buffers,
           std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) override {
    std::vector<uint64_t> addresses;
    for (const auto& b : buffers) addresses.push_back(reinterpret_cast<uint64_t>(b.data()));
    run_.run(source, addresses, scalars, groups);
  }

 private:
  WorkitemRun run_;
};

std::unique_ptr<KernelRunner> on_the_host(std::span<const Source> sources, const Target& t) {
  return std::make_unique<HostRunner>(sources, t);
}

TEST(RenderAmdgpuRun, ShapesMeanTheSame) {
  for (const char* name : {"amdgpu-gfx1030", "amdgpu-gfx1100", "amdgpu-gfx1200", "amdgpu-gfx942"})
    expect_shapes(name, on_the_host);
}

TEST(RenderAmdgpuRun, EveryOpOfEveryDtype) { expect_every_op_of_every_dtype(on_the_host); }

TEST(RenderAmdgpuRun, HandMadeLists) { expect_hand_made_lists(on_the_host); }

}  // namespace
}  // namespace tuff::render
