// Shuffled: a random-order device with three kernels, and commands for it.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "devices/cpu/compiled.h"
#include "devices/shuffle/shuffle.h"
#include "hcq/hazards.h"

namespace tuff::devices {

using namespace hcq;

// A group does one element.
inline const char* kSource = R"(
typedef unsigned int u32;
struct Fill { u32* out; int value; };
void fill(const struct Fill* a, u32 x, u32 y, u32 z) { a->out[x] = (u32)a->value; }
struct Add { const u32* in; u32* out; int value; };
void add(const struct Add* a, u32 x, u32 y, u32 z) { a->out[x] = a->in[x] + (u32)a->value; }
struct Grid { u32* out; int nx, ny; };
void mark(const struct Grid* a, u32 x, u32 y, u32 z) { a->out[(z * a->ny + y) * a->nx + x] += 1 + x + 100 * y + 10000 * z; }
)";

inline constexpr uint32_t kSpoiltWord = 0xFFFFFFFF;
using Words = std::vector<uint32_t>;

struct Shuffled {
  explicit Shuffled(ShuffleOptions options) : device(shuffle_open(options)) {
    static const auto object = compile(kSource);
    const render::Binary binaries[] = {binary_of(object, "fill", 1, 1),
                                       binary_of(object, "add", 2, 1),
                                       binary_of(object, "mark", 1, 2)};
    programs = device->load(binaries);
  }
  explicit Shuffled(uint64_t seed) : Shuffled(ShuffleOptions{.seed = seed}) {}

  Span words(size_t count) { return device->allocator().allocate(4 * count, MemoryKind::Device); }
  Span upload(const Words& values) {
    const Span s = words(values.size());
    device->upload(s, values.data());
    return s;
  }
  Words read(const Span& s) {
    Words out(s.size_bytes / 4);
    device->download(s, out.data());
    return out;
  }
  Command dispatch(size_t program, std::initializer_list<Span> buffers,
                   std::initializer_list<int32_t> scalars, std::array<uint32_t, 3> groups) {
    std::vector<std::byte> block(programs[program]->args().size_bytes());
    size_t at = 0;
    for (const Span& b : buffers) {
      const uint64_t address = b.address();
      std::memcpy(&block[at], &address, 8);
      at += 8;
    }
    std::memcpy(&block[at], scalars.begin(), 4 * scalars.size());
    const Span args = device->allocator().allocate(block.size(), MemoryKind::Args);
    device->upload(args, block.data());
    return {DispatchCmd{programs[program].get(), args, groups, {}}, {}, ""};
  }
  Command fill(const Span& out, int32_t value) {
    return dispatch(0, {out}, {value}, {uint32_t(out.size_bytes / 4), 1, 1});
  }
  Command add(const Span& in, const Span& out, int32_t value) {
    return dispatch(1, {in, out}, {value}, {uint32_t(out.size_bytes / 4), 1, 1});
  }
  uint64_t submit(std::vector<Command> commands, std::span<const uint64_t> slots = {}) {
    return submit(device->compute_queue(), std::move(commands), slots);
  }
  static uint64_t submit(Queue& queue, std::vector<Command> commands,
                         std::span<const uint64_t> slots = {}) {
    CommandList list;
    list.commands = std::move(commands);
    list.slot_count = uint32_t(slots.size());
    return queue.submit_once(queue.encode(list, EncodeUse::Once), slots);
  }
  void run(std::vector<Command> commands) {
    device->compute_queue().wait(submit(std::move(commands)));
  }
  ShuffleStats stats() const { return shuffle_stats(*device); }

  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Program>> programs;
};

inline Command copy(const Span& dst, const Span& src) { return {CopyCmd{dst, src}, {}, ""}; }
inline Command barrier() { return {BarrierCmd{}, {}, ""}; }
inline Command wait(Signal& s, uint32_t slot) { return {WaitCmd{&s, slot}, {}, ""}; }
inline Command signal(Signal& s, uint32_t slot) { return {SignalCmd{&s, slot}, {}, ""}; }

}  // namespace tuff::devices
