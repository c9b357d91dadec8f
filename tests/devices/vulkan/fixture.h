// Fixture of the Vulkan tests: a device under the validation layer with a cache folder of its own,
// the kernels of shaders/, and argument blocks. A machine without a usable device skips, counted.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/env.h"
#include "devices/vulkan/vulkan.h"
#include "hcq/device.h"
#include "shaders/copy.spv.h"
#include "shaders/fill.spv.h"
#include "shaders/probe.spv.h"
#include "tuff/error.h"

namespace tuff::devices {

enum class Kernel { Fill, Copy, Probe };

template <size_t N>
render::Binary make_binary(const char* name, const uint32_t (&words)[N], render::ArgLayout args,
                           std::array<uint32_t, 3> local) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(sizeof words);
  std::memcpy(bytes->data(), words, sizeof words);
  return {name, "main", render::BinaryFormat::SpirV, bytes, args, local, 0};
}

inline render::Binary kernel_binary(Kernel kernel) {
  switch (kernel) {
    case Kernel::Fill: return make_binary("fill", fill_spv, {1, 3}, {64, 1, 1});
    case Kernel::Copy: return make_binary("copy", copy_spv, {2, 2}, {64, 1, 1});
    case Kernel::Probe: return make_binary("probe", probe_spv, {1, 2}, {1, 1, 1});
  }
  return {};
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tuff-vulkan-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class VulkanTest : public ::testing::Test {
 protected:
  void SetUp() override { open(true); }

  void open(bool validation, const std::string& mask = "") {
    close();
    validation_.emplace(Env::TUFF_VK_VALIDATION, validation ? "1" : "0");
    mask_.emplace(Env::TUFF_VK_DISABLE, mask);
    auto candidates = vulkan_probe();
    ASSERT_FALSE(candidates.empty());
    if (!candidates[0].usable) GTEST_SKIP() << candidates[0].reason;
    device_ = vulkan_open("");
    messages_before_ = vulkan_validation_message_count();
  }

  void close() {
    if (!device_) return;
    release();
    bool validated = vulkan_validation_active(*device_);
    device_.reset();
    if (validated) {
      EXPECT_EQ(vulkan_validation_message_count(), messages_before_);
    }
  }

  void TearDown() override { close(); }

  // Frees what the test allocated, once its work has ended.
  void release() {
    wait_unless_lost();
    programs_.clear();
    for (const hcq::Span& s : spans_) device_->allocator().free(s);
    spans_.clear();
  }

  void wait_unless_lost() {
    try {
      device_->compute_queue().wait_idle();
    } catch (const DeviceLost&) {
      // What a test of faults has asked for.
    }
  }

  hcq::Span allocate(size_t size_bytes, hcq::MemoryKind kind = hcq::MemoryKind::Device) {
    spans_.push_back(device_->allocator().allocate(size_bytes, kind));
    return spans_.back();
  }

  const hcq::Program* load(Kernel kernel) {
    render::Binary binary = kernel_binary(kernel);
    auto loaded = device_->load({&binary, 1});
    programs_.push_back(std::move(loaded.at(0)));
    return programs_.back().get();
  }

  // An argument block: addresses, then scalars.
  hcq::Span arguments(const std::vector<hcq::Span>& buffers, const std::vector<int32_t>& scalars) {
    std::vector<std::byte> bytes(buffers.size() * 8 + scalars.size() * 4);
    for (size_t i = 0; i < buffers.size(); ++i) {
      uint64_t address = buffers[i].address();
      std::memcpy(bytes.data() + i * 8, &address, 8);
    }
    if (!scalars.empty())
      std::memcpy(bytes.data() + buffers.size() * 8, scalars.data(), scalars.size() * 4);
    hcq::Span span = allocate((bytes.size() + 15) & ~size_t{15}, hcq::MemoryKind::Args);
    device_->upload(span.sub(0, bytes.size()), bytes.data());
    return span;
  }

  static hcq::Command dispatch(const hcq::Program* program, hcq::Span args, uint32_t groups) {
    return {hcq::DispatchCmd{program, args, {groups, 1, 1}, {}}, {}, program->name()};
  }
  static hcq::Command barrier() { return {hcq::BarrierCmd{}, {}, {}}; }

  void run(const hcq::CommandList& list) {
    hcq::Queue& queue = device_->compute_queue();
    queue.wait(queue.submit_once(queue.encode(list, hcq::EncodeUse::Once)));
  }

  std::vector<uint32_t> words(hcq::Span span) {
    std::vector<uint32_t> out(span.size_bytes / 4);
    device_->download(span, out.data());
    return out;
  }

  TemporaryFolder folder_;
  EnvOverride cache_{Env::TUFF_CACHE_DIR, folder_.path()};
  std::optional<EnvOverride> validation_, mask_;
  std::unique_ptr<hcq::Device> device_;
  std::vector<hcq::Span> spans_;
  std::vector<std::unique_ptr<hcq::Program>> programs_;
  uint64_t messages_before_ = 0;
};

}  // namespace tuff::devices
