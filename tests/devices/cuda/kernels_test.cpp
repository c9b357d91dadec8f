// What the PTX of the project's own kernels computes, through the CUDA device: the shapes that
// matter, every op of every dtype, hand-made lists. Each buffer is an allocation of its own, so
// that an access beside it is a fault.
#include "devices/cuda/fixture.h"
#include "render/amdgpu_runs.h"
#include "render/renderer.h"

namespace tuff::devices::cuda {
namespace {

using namespace test;

class OnTheDevice : public render::KernelRunner {
 public:
  OnTheDevice(std::span<const render::Source> sources, const Target& t) : device_(cuda_open("")) {
    const std::vector<render::Binary> binaries = render::renderer_of(t).compile(sources, t);
    auto programs = device_->load(binaries);
    for (size_t i = 0; i < programs.size(); ++i)
      programs_.emplace(binaries[i].symbol, std::move(programs[i]));
  }
  ~OnTheDevice() override { programs_.clear(); }

  void run(const render::Source& source, std::span<const std::span<uint8_t>> buffers,
           std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) override {
    const Program& program = *programs_.at(source.symbol);
    std::vector<MemoryBlock> blocks;
    blocks.reserve(buffers.size());
    std::vector<uint8_t> arguments(std::max(program.args().size_bytes(), 16u));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const size_t bytes = std::max<size_t>(buffers[i].size(), 1);
      const MemoryBlock& b = blocks.emplace_back(device_->map_block(bytes, MemoryKind::Device));
      device_->upload({&b, 0, buffers[i].size()}, buffers[i].data());
      std::memcpy(&arguments[8 * i], &b.address, 8);
    }
    for (size_t i = 0; i < scalars.size(); ++i)
      std::memcpy(&arguments[program.args().scalar_offset(uint32_t(i))], &scalars[i], 4);
    const MemoryBlock block = device_->map_block(arguments.size(), MemoryKind::Device);
    const Span args{&block, 0, arguments.size()};
    device_->upload(args, arguments.data());
    CommandList list;
    list.commands = {{DispatchCmd{&program, args, groups, {}}, {{args, false}}, ""}};
    Queue& queue = device_->compute_queue();
    queue.wait(queue.submit_once(queue.encode(list, EncodeUse::Once)));
    for (size_t i = 0; i < buffers.size(); ++i) {
      device_->download({&blocks[i], 0, buffers[i].size()}, buffers[i].data());
      device_->unmap_block(blocks[i]);
    }
    device_->unmap_block(block);
  }

 private:
  std::unique_ptr<hcq::Device> device_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

std::unique_ptr<render::KernelRunner> on_the_device(std::span<const render::Source> sources,
                                                    const Target& t) {
  return std::make_unique<OnTheDevice>(sources, t);
}

class CudaKernels : public testing::Test {
 protected:
  CudaKernels() { reset(); }
  const EnvOverride library_{Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA};
};

// Turing has no matrix instructions of ours.
TEST_F(CudaKernels, ShapesMeanTheSame) {
  for (const char* architecture : {"75", "86"}) {
    set_options(fmt::format("capability:{}", architecture).c_str());
    render::expect_shapes(builtin_target(fmt::format("nvptx-sm_{}", architecture)), on_the_device);
  }
}

TEST_F(CudaKernels, EveryOpOfEveryDtype) {
  set_options("");
  render::expect_every_op_of_every_dtype(builtin_target("nvptx-sm_86"), on_the_device);
}

TEST_F(CudaKernels, HandMadeLists) {
  set_options("");
  render::expect_hand_made_lists(builtin_target("nvptx-sm_86"), on_the_device);
}

}  // namespace
}  // namespace tuff::devices::cuda
