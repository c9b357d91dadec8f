// An open device with its kernels, and what tests of devices do with words in its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "hcq/device.h"

namespace tuff::devices {

using Words = std::vector<uint32_t>;

inline Words counting(uint32_t count, uint32_t from) {
  Words w(count);
  std::iota(w.begin(), w.end(), from);
  return w;
}

struct OpenDevice {
  hcq::Queue& queue() const { return device->compute_queue(); }
  hcq::Span words(size_t count, hcq::MemoryKind kind = hcq::MemoryKind::Device) {
    return device->allocator().allocate(4 * count, kind);
  }
  hcq::Span upload(const Words& values) {
    const hcq::Span s = words(values.size());
    device->upload(s, values.data());
    return s;
  }
  Words read(const hcq::Span& s) {
    Words out(s.size_bytes / 4);
    device->download(s, out.data());
    return out;
  }
  // An argument block: addresses, then scalars.
  hcq::Span args(const std::vector<hcq::Span>& buffers,
                 const std::vector<int32_t>& scalars) {
    std::vector<std::byte> block((8 * buffers.size() + 4 * scalars.size() + 31) / 32 * 32);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const uint64_t address = buffers[i].address();
      std::memcpy(&block[8 * i], &address, 8);
    }
    std::memcpy(&block[8 * buffers.size()], scalars.data(),
                4 * scalars.size());
    const hcq::Span s = device->allocator().allocate(block.size(), hcq::MemoryKind::Args);
    device->upload(s, block.data());
    return s;
  }
  hcq::Command dispatch(size_t kernel, const std::vector<hcq::Span>& buffers, int32_t scalar,
                        uint32_t groups, int32_t slot = -1) {
    hcq::DispatchCmd d{programs[kernel].get(), args(buffers, {scalar}), {groups, 1, 1}, {}};
    d.group_slots[0] = slot;
    return {d, {}, ""};
  }
  static hcq::Command copy(const hcq::Span& dst, const hcq::Span& src) {
    return {hcq::CopyCmd{dst, src}, {}, ""};
  }
  static hcq::Command barrier() { return {hcq::BarrierCmd{}, {}, ""}; }
  static hcq::CommandList list_of(std::vector<hcq::Command> commands, uint32_t slots = 0) {
    hcq::CommandList list;
    list.commands = std::move(commands);
    list.slot_count = slots;
    return list;
  }
  static uint64_t submit(hcq::Queue& q, std::vector<hcq::Command> commands,
                         std::span<const uint64_t> slots = {}) {
    const hcq::CommandList list = list_of(std::move(commands), uint32_t(slots.size()));
    return q.submit_once(q.encode(list, hcq::EncodeUse::Once), slots);
  }
  uint64_t submit(std::vector<hcq::Command> commands, std::span<const uint64_t> slots = {}) {
    return submit(queue(), std::move(commands), slots);
  }
  void run(std::vector<hcq::Command> commands) { queue().wait(submit(std::move(commands))); }

  std::unique_ptr<hcq::Device> device;
  std::vector<std::unique_ptr<hcq::Program>> programs;
};

}  // namespace tuff::devices
