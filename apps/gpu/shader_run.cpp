#include "gpu/shader_run.h"

#include <algorithm>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/compilers.h"
#include "devices/emulator.h"

namespace tuff::gpu {
namespace {

constexpr const char* kProcessor = "gfx1100";
constexpr uint64_t kFirstBuffer = 0x7000'0000'0000, kBetweenBuffers = 1 << 20;
// Descriptor sets and push constants lie where addresses of 32 bits reach.
constexpr uint64_t kFirstBlock = kVulkanAddresses + 0x10000, kBetweenBlocks = 0x10000;
constexpr uint64_t kMostInstructions = 1'000'000'000'000;

// Everything that the kernel can reach: regions of memory, and registers that say where they are.
class LaunchMemory {
 public:
  explicit LaunchMemory(emu_api::LaunchRequest& request) : request_(request) {}

  uint64_t add_buffer(std::vector<uint8_t>& bytes) {
    const uint64_t address = next_buffer_;
    next_buffer_ += (bytes.size() / kBetweenBuffers + 2) * kBetweenBuffers;
    if (!bytes.empty()) request_.memory.push_back({address, &bytes, true});
    return address;
  }

  // What the driver would write for the kernel to read.
  uint64_t add_block(std::vector<uint8_t>& bytes) {
    const uint64_t address = next_block_;
    next_block_ += (bytes.size() / kBetweenBlocks + 1) * kBetweenBlocks;
    if (!bytes.empty()) request_.memory.push_back({address, &bytes, false});
    return address;
  }

 private:
  emu_api::LaunchRequest& request_;
  uint64_t next_buffer_ = kFirstBuffer, next_block_ = kFirstBlock;
};

void append(std::vector<uint8_t>& to, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  to.insert(to.end(), bytes, bytes + size);
}

// Four words that describe a buffer: its address and size, components as they lie, FORMAT
// 32_FLOAT, and OOB_SELECT 3: offsets are compared with the size in bytes. Source: Mesa 22.3,
// radv_descriptor_set.c, write_buffer_descriptor; sid.h, SQ_BUF_RSRC_WORD3 of GFX11.
std::array<uint32_t, 4> buffer_descriptor(uint64_t address, uint64_t size_bytes) {
  constexpr uint32_t kComponentsXyzw = 4 | 5 << 3 | 6 << 6 | 7 << 9, kFormat32Float = 22 << 12,
                     kBoundsInBytes = 3u << 28;
  return {uint32_t(address), uint32_t(address >> 32) & 0xFFFF,
          uint32_t(align_up(size_bytes, uint64_t{4})),
          kComponentsXyzw | kFormat32Float | kBoundsInBytes};
}

// A set's descriptors lie in the order of their numbers, without gaps: a layout of buffers alone
// has no others (Mesa 22.3, radv_descriptor_set.c, radv_CreateDescriptorSetLayout).
std::map<uint32_t, std::vector<uint8_t>> descriptor_sets(std::vector<ShaderBuffer>& buffers,
                                                         LaunchMemory& memory) {
  std::map<uint32_t, std::vector<uint8_t>> sets;
  std::vector<ShaderBuffer*> sorted;
  for (ShaderBuffer& b : buffers) sorted.push_back(&b);
  const auto place = [](const ShaderBuffer* b) { return std::pair(b->set, b->binding); };
  std::ranges::sort(sorted, {}, place);
  for (ShaderBuffer* b : sorted) {
    const auto words = buffer_descriptor(memory.add_buffer(b->bytes), b->bytes.size());
    append(sets[b->set], words.data(), sizeof words);
  }
  return sets;
}

// One behind the other, each at a multiple of its size.
std::vector<uint8_t> argument_block(std::vector<ShaderArgument>& arguments, LaunchMemory& memory) {
  std::vector<uint8_t> block;
  for (ShaderArgument& a : arguments) {
    const size_t size = a.is_buffer ? sizeof(uint64_t) : a.bytes.size();
    block.resize(align_up(block.size(), size));
    if (a.is_buffer) {
      const uint64_t address = memory.add_buffer(a.bytes);
      append(block, &address, sizeof address);
    } else {
      append(block, a.bytes.data(), a.bytes.size());
    }
  }
  return block;
}

std::vector<uint8_t> compiled(const ShaderLaunch& launch, uint32_t push_bytes) {
  VulkanShader shader{launch.spirv, launch.entry, {}, push_bytes, launch.constants};
  for (const ShaderBuffer& b : launch.buffers) shader.buffers.emplace_back(b.set, b.binding);
  return compile_aco(shader, kProcessor);
}

}  // namespace

ShaderReport run_shader(ShaderLaunch& launch, const EmulationOptions& options) {
  emu_api::LaunchRequest request;
  LaunchMemory memory(request);
  std::vector<uint8_t> block, push = launch.push;
  if (!launch.arguments.empty()) {
    block = argument_block(launch.arguments, memory);
    const uint64_t address = memory.add_buffer(block);
    append(push, &address, sizeof address);
  }
  request.object = compiled(launch, uint32_t(push.size()));
  request.kernel = "main";
  std::map<uint32_t, std::vector<uint8_t>> sets = descriptor_sets(launch.buffers, memory);
  for (auto& [set, bytes] : sets)
    request.registers[fmt::format("set.{}", set)] = uint32_t(memory.add_block(bytes));
  request.registers["push"] = uint32_t(memory.add_block(push));
  for (size_t at = 0; at + 4 <= push.size(); at += 4)
    std::memcpy(&request.registers[fmt::format("push.{}", at)], &push[at], 4);
  for (size_t axis = 0; axis < 3; ++axis)
    request.registers[fmt::format("groups.{}", axis)] = launch.groups[axis];
  request.groups = launch.groups;
  request.instruction_budget = kMostInstructions;
  request.profile = {options.chip, options.instructions, {}};

  emu_api::Failure failure;
  const emu_api::LaunchResult result = devices::emulator().launch(request, failure);
  devices::throw_failure(failure);
  ShaderReport report{result.profile, result.findings};
  if (!result.finished && report.wrong.empty()) report.wrong = "it did not finish";
  return report;
}

}  // namespace tuff::gpu
