// The worked example: one expression on every floor, for targets that need not be there.
#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/target.h"
#include "docs/docs.h"
#include "devices/registry.h"
#include "ir/text.h"
#include "hcq/graph.h"
#include "kernel/lowered.h"
#include "render/renderer.h"
#include "sched/schedule.h"

namespace tuff::docs {
namespace {

constexpr int64_t kRows = 64, kColumns = 64;

std::string floor_text(const std::string& title, const std::string& language,
                       const std::string& text) {
  return fmt::format("{}:\n\n```{}\n{}{}```\n\n", title, language, text,
                     text.ends_with('\n') ? "" : "\n");
}

ir::UOp example() {
  auto operand = [] {
    const Ref<ir::Storage> memory =
        make_ref<ir::Storage>("CPU", DType::F32, kRows * kColumns);
    return ir::reshape(ir::buffer(memory), {kRows, kColumns});
  };
  const ir::UOp a = operand(), b = operand();
  const ir::UOp sum = ir::reduce(ir::Op::Add, ir::alu(ir::Op::Add, {a, b}), {0, 1});
  return ir::reshape(sum, {});
}

std::unique_ptr<hcq::Device> open_null_device() {
  for (const devices::DeviceKind& kind : devices::device_kinds()) {
    if (std::string(kind.kind) == "NULL") return kind.open("");
  }
  fail<Unsupported>("docs: this build has no NULL device");
}

std::vector<std::unique_ptr<hcq::Program>> load(hcq::Device& device,
                                                std::span<const render::Source> sources) {
  std::vector<render::Binary> binaries;
  for (const render::Source& s : sources) {
    render::Binary& binary = binaries.emplace_back();
    binary.name = s.name;
    binary.symbol = s.symbol;
    binary.args = s.args;
    binary.local = s.local;
  }
  return device.load(binaries);
}

// The kernels as they would be captured, the schedule's inputs re-bound at each replay.
class CapturedExample {
 public:
  CapturedExample(const sched::Schedule& schedule, std::span<const render::Source> sources)
      : device_(open_null_device()), programs_(load(*device_, sources)) {
    for (const sched::BufferSlot& slot : schedule.buffers) {
      memory_.push_back(device_->allocator().allocate(slot.size_bytes(), hcq::MemoryKind::Device));
    }
    std::vector<hcq::GraphNode> nodes;
    for (const sched::Call& call : schedule.calls) {
      if (call.kind == sched::CallKind::Kernel)
        nodes.emplace_back(kernel(schedule, call, nodes.size()));
    }
    graph_ = std::make_unique<hcq::CommandGraph>(*device_, std::move(nodes), input_count_, 0);
  }
  ~CapturedExample() {
    graph_.reset();
    for (const hcq::Span& span : memory_) device_->allocator().free(span);
  }
  std::string text() const { return hcq::to_text(graph_->commands()); }

 private:
  hcq::Launch kernel(const sched::Schedule& schedule, const sched::Call& call, size_t number) {
    hcq::Launch out;
    out.program = programs_[number].get();
    for (size_t k = 0; k < call.args.size(); ++k) {
      const sched::BufferSlot& slot = schedule.buffers[call.args[k]];
      hcq::LaunchOperand& buffer = out.operands.emplace_back();
      buffer.size_bytes = slot.size_bytes();
      buffer.write = k < call.output_count;
      buffer.read = !buffer.write;
      if (slot.origin == sched::BufferOrigin::Input) {
        buffer.input = static_cast<int32_t>(slot.index);
        input_count_ = std::max(input_count_, slot.index + 1);
      } else {
        buffer.span = memory_[call.args[k]];
      }
    }
    return out;
  }

  std::unique_ptr<hcq::Device> device_;
  std::vector<std::unique_ptr<hcq::Program>> programs_;
  std::vector<hcq::Span> memory_;
  uint32_t input_count_ = 0;
  std::unique_ptr<hcq::CommandGraph> graph_;
};

// Lowered and rendered for one target; the sources are handed on.
std::string target_text(const sched::Schedule& schedule, const char* target_name,
                        const char* language, std::vector<render::Source>& sources) {
  const Target target = builtin_target(target_name);
  std::string lists, code;
  for (const sched::Call& call : schedule.calls) {
    if (call.kind != sched::CallKind::Kernel) continue;
    const kernel::LinearKernel lowered = kernel::lower(call.ast, target, {.choose_opts = false});
    sources.push_back(render::renderer_of(target).render(lowered, target));
    lists += kernel::to_text(lowered);
    code += render::to_text(sources.back());
  }
  return floor_text(
             fmt::format(
                 "Lowered for the target `{}` without heuristics (`TUFF_NOOPT=1`), a linear list",
                 target_name),
             "", lists) +
         floor_text(fmt::format("Rendered for `{}`", target_name), language, code);
}

}  // namespace

std::string walk_text() {
  const Target target = builtin_target("c-x86-64");
  const ir::UOp root = ir::make(ir::Op::Contiguous, DType::F32, {example()});
  const sched::Scheduled scheduled = sched::schedule(
      std::span(&root, 1), [&](const std::string&) -> const Target& { return target; });
  const sched::Schedule& schedule = *scheduled.schedule;
  std::string out =
      floor_text("`a` and `b` are (64, 64); the tensor floor", "", ir::to_text(root));
  out += floor_text("Scheduled, LINEAR", "", sched::to_text(schedule));
  std::string asts;
  for (const sched::Call& call : schedule.calls) {
    if (call.kind == sched::CallKind::Kernel) asts += ir::to_text(call.ast);
  }
  out += floor_text("The kernel floor", "", asts);
  std::vector<render::Source> c_sources, spirv_sources;
  out += target_text(schedule, "c-x86-64", "c", c_sources);
  out += target_text(schedule, "spirv-generic", "", spirv_sources);
  out += floor_text("Captured, neutral commands (`b0` is the argument memory)", "",
                    CapturedExample(schedule, c_sources).text());
  out.pop_back();
  return out;
}

}  // namespace tuff::docs
