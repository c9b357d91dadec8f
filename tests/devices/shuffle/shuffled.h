// Shuffled: a random-order device with three kernels, and commands for it.
#pragma once

#include <vector>

#include "devices/cpu/compiled.h"
#include "devices/open_device.h"
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

struct Shuffled : OpenDevice {
  explicit Shuffled(ShuffleOptions options) {
    device = shuffle_open(options);
    static const auto object = compile(kSource);
    const render::Binary binaries[] = {binary_of(object, "fill", 1, 1),
                                       binary_of(object, "add", 2, 1),
                                       binary_of(object, "mark", 1, 2)};
    programs = device->load(binaries);
  }
  explicit Shuffled(uint64_t seed) : Shuffled(ShuffleOptions{.seed = seed}) {}

  Command dispatch(size_t program, std::initializer_list<Span> buffers,
                   std::initializer_list<int32_t> scalars, std::array<uint32_t, 3> groups) {
    return {DispatchCmd{programs[program].get(), args(buffers, scalars), groups, {}}, {}, ""};
  }
  Command fill(const Span& out, int32_t value) {
    return dispatch(0, {out}, {value}, {uint32_t(out.size_bytes / 4), 1, 1});
  }
  Command add(const Span& in, const Span& out, int32_t value) {
    return dispatch(1, {in, out}, {value}, {uint32_t(out.size_bytes / 4), 1, 1});
  }
  ShuffleStats stats() const { return shuffle_stats(*device); }
};

inline Command copy(const Span& dst, const Span& src) { return {CopyCmd{dst, src}, {}, ""}; }
inline Command barrier() { return {BarrierCmd{}, {}, ""}; }
inline Command wait(Signal& s, uint32_t slot) { return {WaitCmd{&s, slot}, {}, ""}; }
inline Command signal(Signal& s, uint32_t slot) { return {SignalCmd{&s, slot}, {}, ""}; }

}  // namespace tuff::devices
