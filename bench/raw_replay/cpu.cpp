// A replay's floor on the CPU: the compiled functions called one after another by a bare loop.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "devices/cpu/cpu.h"
#include "devices/cpu/cpu_queue.h"
#include "raw_replay.h"

namespace tuff::devices {
namespace {

class CpuRawReplay final : public RawReplay {
 public:
  explicit CpuRawReplay(const hcq::CommandList& list) {
    for (const hcq::Command& command : list.commands) {
      if (std::holds_alternative<hcq::BarrierCmd>(command.body)) continue;
      const auto* dispatch = std::get_if<hcq::DispatchCmd>(&command.body);
      TUFF_CHECK(dispatch && !dispatch->indirect, "a raw replay is of direct dispatches alone");
      const auto& program = dynamic_cast<const CpuProgram&>(*dispatch->program);
      const auto& groups = dispatch->groups;
      scratch_.resize(std::max(scratch_.size(), scratch_lines(program.scratch_bytes())));
      calls_.push_back({program.fn(), dispatch->args.host(), {groups[0], groups[1], groups[2]}});
    }
  }

  void run() override {
    for (const Call& c : calls_) {
      for (uint32_t z = 0; z < c.grid.z; ++z) {
        for (uint32_t y = 0; y < c.grid.y; ++y) {
          for (uint32_t x = 0; x < c.grid.x; ++x) c.fn(c.args, x, y, z, scratch_.data());
        }
      }
    }
  }

  uint64_t driver_submit_ns() const override { return 0; }

 private:
  struct Call {
    render::CpuKernelFn fn;
    const void* args;
    CpuGrid grid;
  };
  std::vector<Call> calls_;
  std::vector<ScratchLine> scratch_;
};

}  // namespace

std::unique_ptr<RawReplay> cpu_raw_replay(hcq::Device&, const hcq::CommandList& list) {
  return std::make_unique<CpuRawReplay>(list);
}

}  // namespace tuff::devices
