#include <algorithm>

#include <tuff/tensor.h>

#include "base/check.h"
#include "base/env.h"
#include "check/case.h"
#include "docs/docs.h"
#include "devices/registry.h"
#include "devices/vulkan/vulkan.h"
#include "engine/stats.h"
#include "ir/op.h"
#include "models/digits.h"
#include "models/digits_trainer.h"
#include "models/gpt_trainer.h"

namespace tuff::docs {
namespace {

// Text inside a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

const char* default_text(const EnvRow& row) {
  return *row.default_value ? row.default_value : "(empty)";
}

std::string floors_text(uint8_t floors) {
  std::string out;
  auto add = [&](ir::Floor floor, const char* name) {
    if (floors & floor) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(ir::kFloorTensor, "tensor");
  add(ir::kFloorKernel, "kernel");
  add(ir::kFloorLinear, "linear");
  return out;
}

struct KindProse {
  const char *kind, *through, *without;
};
constexpr KindProse kKinds[] = {
    {"VULKAN",
     "any Vulkan driver, 1.1 or newer; device addresses and timeline semaphores where it has them",
     "Mesa's lavapipe, SwiftShader"},
    {"CPU", "C through clang, a command ring and worker threads", "needs none"},
    {"AMD", "Linux's `/dev/kfd`: rings of packets and machine code, without a driver library",
     "`AMD_IFACE=MOCK`: emulated gfx1100 that check kernels and command streams"},
    {"CUDA", "NVIDIA's driver library, libcuda: streams and graphs, PTX that clang makes",
     "a library in its place (`TUFF_CUDA_LIBRARY`), of tests alone, that interprets PTX"},
    {"NV",
     "NVIDIA's kernel driver: channels of methods, machine code, without CUDA; simulated, never run",
     "`NV_IFACE=MOCK`: emulated GPUs that execute PTX and check command streams"},
    {"CL", "any OpenCL driver, 1.2 or newer, by shared virtual memory where there is some",
     "PoCL, Oclgrind"},
    {"DISK", "files: ranges of them are memory, copies are reads and writes, by io_uring or threads",
     "itself"},
    {"NULL", "computes nothing, correctly: measures the engine's own cost", "needs none"},
    {"SHUFFLE",
     "the CPU's kernels in every order that barriers, waits and signals allow, by a seed: for "
     "tests",
     "needs none"},
};

}  // namespace

std::string env_table() {
  std::string out = "| Variable | Default | Allowed | Meaning |\n|---|---|---|---|\n";
  for (const EnvRow& row : env_rows()) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", row.name, default_text(row), env_allowed(row),
                       cell(row.prose));
  }
  return out;
}

std::string op_table() {
  std::string out = "| Op | Sources | Floors | Meaning |\n|---|---|---|---|\n";
  for (const ir::OpRow& row : ir::op_rows()) {
    const std::string arity = row.arity < 0 ? "any" : std::to_string(row.arity);
    out += fmt::format("| `{}` | {} | {} | {} |\n", row.text, arity, floors_text(row.floors),
                       cell(row.prose));
  }
  return out;
}

std::string budget_table() {
  std::string out = "| Op | dtype | CPU | Vulkan | Source |\n|---|---|---|---|---|\n";
  for (const check::BudgetRow& row : check::budget_rows()) {
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", ir::name(row.op), short_name(row.dtype),
                       row.host_ulp, row.vulkan_ulp, cell(row.source));
  }
  return out;
}

std::string device_table() {
  std::string out = "| Device | Through | Without the hardware |\n|---|---|---|\n";
  for (const devices::DeviceKind& kind : devices::device_kinds()) {
    const auto* row = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindProse& k) {
      return std::string(k.kind) == kind.kind;
    });
    TUFF_CHECK(row != std::end(kKinds), "docs: device kind {} has no row", kind.kind);
    out += fmt::format("| `{}` | {} | {} |\n", row->kind, row->through, row->without);
  }
  return out;
}

std::string limit_table() {
  std::string out = "| Limit | At least | Meaning |\n|---|---|---|\n";
  for (const devices::VulkanLimit& row : devices::vulkan_limits())
    out += fmt::format("| `{}` | {} | {} |\n", row.name, row.lowest, cell(row.prose));
  return out;
}

namespace {

void append_help(const CLI::App& app, const std::string& prefix, std::string& out) {
  // Not app.help(), which would answer for the subcommand that is running.
  const std::string help = app.get_formatter()->make_help(&app, prefix, CLI::AppFormatMode::Normal);
  out += fmt::format("```\n{}```\n\n", help.substr(0, help.find_last_not_of('\n') + 2));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    append_help(*sub, prefix + " " + sub->get_name(), out);
  }
}

// Kernels that run when `make` is realized, on the device that computes nothing. Leaves are memory.
template <class Function>
std::string kernel_row(const char* name, Function make) {
  Tensor result = make();
  const uint64_t before = engine::counters().kernels;
  result.realize();
  return fmt::format("| {} | {} |\n", name, engine::counters().kernels - before);
}

const TensorOptions kNull{DType::F32, "NULL"};

Tensor leaf(const Sizes& sizes) {
  Tensor t = Tensor::empty(sizes, kNull);
  return t.realize();
}

std::string forward_rows() {
  std::string out;
  out += kernel_row("`a + b * 2`", [] { return leaf({64, 64}) + leaf({64, 64}) * 2; });
  out += kernel_row("`(a + b).sum()`", [] { return (leaf({64, 64}) + leaf({64, 64})).sum(); });
  out += kernel_row("softmax of rows", [] { return leaf({64, 256}).softmax(-1); });
  out += kernel_row("layer norm",
                    [] { return leaf({64, 256}).layernorm({256}, leaf({256}), leaf({256})); });
  out += kernel_row("linear, then GELU", [] {
    return leaf({64, 256}).linear(leaf({128, 256}), leaf({128})).gelu("tanh");
  });
  out += kernel_row("causal attention", [] {
    const Sizes s{2, 4, 64, 32};
    return Tensor::scaled_dot_product_attention(leaf(s), leaf(s), leaf(s), {}, 0,
                                                /*is_causal=*/true);
  });
  out += kernel_row("convolution, ReLU, max pooling", [] {
    return leaf({8, 3, 28, 28}).conv2d(leaf({16, 3, 5, 5}), leaf({16}), 1, 2).relu().max_pool2d(2);
  });
  return out;
}

std::string training_rows() {
  models::TrainingObserver observer;
  models::GptTraining gpt;
  gpt.device = "NULL";
  gpt.recipe.steps = 3;
  const models::Corpus corpus = models::embedded_corpus();
  models::GptTrainer gpt_trainer(gpt, corpus);
  gpt_trainer.run(observer);
  models::DigitsTraining digits;
  digits.device = "NULL";
  digits.steps = 3;
  const io::ImageSplit images = models::draw_digits({.train_count = 100, .test_count = 10});
  models::DigitsTrainer digits_trainer(digits, images);
  digits_trainer.run(observer);
  return fmt::format(
      "| training step of the GPT (4 layers, AdamW) | {} |\n| training step of the digits ConvNet "
      "(AdamW) | {} |\n",
      gpt_trainer.report().kernels_per_step, digits_trainer.report().kernels_per_step);
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string out;
  append_help(app, app.get_name(), out);
  out.pop_back();
  return out;
}

std::string kernel_table() {
  return "| Function | Kernels |\n|---|---|\n" + forward_rows() + training_rows();
}

}  // namespace tuff::docs
