// Random numbers: Threefry-2x32-20 with a counter that lives in device memory, so that a captured
// step draws new numbers at every replay. State per device: u32 (key0, key1, counter low, counter
// high).
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "base/check.h"
#include "engine/device.h"
#include "tensor/impl.h"

namespace tuff {

using graph::Op;
using graph::UOp;

namespace {

struct Generator {
  Tensor state;        // as stored
  uint64_t drawn = 0;  // numbers handed out since then, not stored yet
};

struct Generators {
  std::mutex mutex;
  uint64_t seed = 0;
  std::map<std::string, Generator> by_device;
};
Generators& generators() {
  static Generators& g = *std::make_unique<Generators>().release();
  return g;
}

Tensor fresh_state(uint64_t seed, const std::string& device) {
  const std::vector<uint32_t> words{uint32_t(seed), uint32_t(seed >> 32), 0, 0};
  return Tensor::from(words, {4}, {DType::U32, device});
}

Tensor u32(const Tensor& like, uint32_t v) {
  return Tensor::full({}, v, {DType::U32, like.device()});
}

// A 64-bit counter in two words plus n, per element of n.
std::pair<Tensor, Tensor> advanced(const Tensor& state, const Tensor& n_low, uint32_t n_high) {
  const Tensor low = state[2] + n_low;
  const Tensor carry = (low < n_low).cast(DType::U32);
  return {low, state[3] + u32(state, n_high) + carry};
}

// The state and the number of the first draw of `count` numbers; the draw is noted.
std::pair<Tensor, uint64_t> draw(const std::string& device, uint64_t count) {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  Generator& of = g.by_device[device];
  if (!of.state.defined()) of.state = fresh_state(g.seed, device);
  const uint64_t first = of.drawn;
  of.drawn += count;
  return {of.state, first};
}

// count words of random bits, as u32.
Tensor random_bits(const Sizes& sizes, const std::string& device) {
  const int64_t count = graph::element_count(detail::shape_of(sizes));
  auto [state, first] = draw(device, uint64_t(count));
  auto [base_low, base_high] = advanced(state, u32(state, uint32_t(first)), uint32_t(first >> 32));
  const Tensor index = Tensor::arange(0, count, 1, {DType::U32, device});
  const Tensor low = base_low + index;
  const Tensor high = base_high + (low < index).cast(DType::U32);
  const Sizes flat{count};
  auto part = [&](const Tensor& t) { return detail::uop(t.expand(flat)); };
  const UOp bits = graph::make(Op::Threefry, DType::U32,
                               {part(low), part(high), part(state[0]), part(state[1])}, int64_t(0));
  return detail::derive(state, bits).reshape(sizes);
}

// 24 random bits as a float in [0, 1): exact, so every device agrees.
Tensor unit_floats(const Sizes& sizes, const std::string& device) {
  const UOp bits = detail::uop(random_bits(sizes, device));
  const UOp top = graph::alu(Op::Shr, {bits, graph::constant(DType::U32, 8)});
  const UOp value =
      graph::alu(Op::Mul, {graph::cast(top, DType::F32), graph::constant(DType::F32, 0x1p-24)});
  return detail::wrap(value, device);
}

Tensor finished(const Tensor& t, const TensorOptions& o) {
  Tensor out = t.cast(o.dtype);
  if (o.requires_grad) {
    out.realize();
    out.set_requires_grad();
  }
  return out;
}

void require_float(const char* what, DType t) {
  if (!is_float(t)) fail<InvalidArgument>("{}: {} is no floating-point type", what, name(t));
}

}  // namespace

namespace detail {

std::vector<Tensor> pending_generator_states() {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  std::vector<Tensor> out;
  for (auto& [device, of] : g.by_device) {
    if (!of.drawn) continue;
    auto [low, high] =
        advanced(of.state, u32(of.state, uint32_t(of.drawn)), uint32_t(of.drawn >> 32));
    const Tensor next = Tensor::stack({of.state[0], of.state[1], low, high});
    out.push_back(
        derive(of.state, graph::make(Op::Assign, DType::U32, {uop(of.state), uop(next)})));
  }
  return out;
}

void generators_realized() {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  for (auto& [device, of] : g.by_device) of.drawn = 0;
}

}  // namespace detail

void Tensor::manual_seed(uint64_t seed) {
  Generators& g = generators();
  std::vector<std::pair<std::string, Tensor>> existing;
  {
    std::lock_guard lock(g.mutex);
    g.seed = seed;
    for (auto& [device, of] : g.by_device) {
      of.drawn = 0;
      existing.emplace_back(device, of.state);
    }
  }
  // Written in place: functions captured earlier draw from the new seed as well.
  const std::array<uint32_t, 4> words{uint32_t(seed), uint32_t(seed >> 32), 0, 0};
  for (auto& [device, state] : existing) state.copy_from(words.data(), sizeof words);
}

Tensor Tensor::rand(const Sizes& sizes, const TensorOptions& o) {
  require_float("rand", o.dtype);
  return finished(unit_floats(sizes, engine::canonical_device(o.device)), o);
}
Tensor Tensor::uniform(const Sizes& sizes, double low, double high, const TensorOptions& o) {
  require_float("uniform", o.dtype);
  if (!(low <= high))
    fail<InvalidArgument>("uniform: lower bound {} is above upper bound {}", low, high);
  return finished(unit_floats(sizes, engine::canonical_device(o.device)) * (high - low) + low, o);
}
Tensor Tensor::randn(const Sizes& sizes, const TensorOptions& o) {
  require_float("randn", o.dtype);
  const std::string device = engine::canonical_device(o.device);
  const Tensor u = unit_floats(sizes, device), v = unit_floats(sizes, device);
  return finished(((1.0 - u).log() * -2.0).sqrt() * (v * (2 * M_PI)).cos(), o);
}
Tensor Tensor::randint(int64_t low, int64_t high, const Sizes& sizes, const TensorOptions& o) {
  if (low >= high) fail<InvalidArgument>("randint: the range {}..{} is empty", low, high - 1);
  if (high - low > (int64_t(1) << 24))
    fail<InvalidArgument>("randint: a range of {} values is more than 2^24", high - low);
  const Tensor u = unit_floats(sizes, engine::canonical_device(o.device));
  return ((u * double(high - low)).cast(DType::I32) + low).cast(o.dtype);
}

}  // namespace tuff
