// Random numbers: Threefry-2x32-20 with a counter that lives in device memory, so that a captured
// step draws new numbers at every replay. State per device: u32 (key0, key1, counter low, counter
// high).
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "base/check.h"
#include "engine/device.h"
#include "ir/device_group.h"
#include "tensor/impl.h"
#include "tensor/order.h"
#include "tensor/shards.h"

namespace tuff {

using ir::Op;
using ir::UOp;

namespace {

// No tensor of it stays alive: the numbers of a live tensor are kept when its memory is assigned
// to.
struct Generator {
  Ref<engine::Buffer> memory;  // the state as stored
  uint64_t drawn = 0;          // numbers handed out since then, not stored yet

  Tensor state() const {
    return detail::wrap(ir::reshape(ir::buffer(memory), {4}), memory->device);
  }
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

Ref<engine::Buffer> fresh_state(uint64_t seed, const std::string& device) {
  const std::vector<uint32_t> words{uint32_t(seed), uint32_t(seed >> 32), 0, 0};
  return detail::buffer_of(Tensor::from(words, {4}, {DType::U32, device}));
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

// The state and the number of the first draw of `count` numbers; the draw is noted. For those who
// build.
std::pair<Tensor, uint64_t> draw(const std::string& device, uint64_t count) {
  // A state there could never be stored, and every realization stores all of them.
  if (device.starts_with("DISK:"))
    fail<Unsupported>("random numbers: {} computes nothing: draw them on a device that does",
                      device);
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  Generator& of = g.by_device[device];
  if (!of.memory) of.memory = fresh_state(g.seed, device);
  const uint64_t first = of.drawn;
  of.drawn += count;
  return {of.state(), first};
}

// The words of `count` numbers: word 0, and word 1 of the same counters.
std::array<UOp, 2> random_bits(const Sizes& sizes, const std::string& device) {
  detail::require_numbers("random numbers", sizes);
  const int64_t count = ir::element_count(detail::shape_of(sizes));
  auto [state, first] = draw(device, uint64_t(count));
  auto [base_low, base_high] = advanced(state, u32(state, uint32_t(first)), uint32_t(first >> 32));
  const Tensor index = Tensor::arange(0, count, 1, {DType::U32, device});
  const Tensor low = base_low + index;
  const Tensor high = base_high + (low < index).cast(DType::U32);
  const Sizes flat{count};
  auto part = [&](const Tensor& t) -> UOp { return detail::uop(t.expand(flat)); };
  std::array<UOp, 2> words;
  for (int64_t word = 0; word < 2; word++) {
    const UOp bits = ir::make(Op::Threefry, DType::U32,
                                 {part(low), part(high), part(state[0]), part(state[1])}, word);
    words[size_t(word)] = ir::reshape(bits, detail::shape_of(sizes));
  }
  return words;
}

// The upper `bits` bits of a word as a float times 2^scale.
UOp upper_bits(const UOp& word, int bits, DType t, int scale) {
  const UOp top = ir::alu(Op::Shr, {word, ir::constant(DType::U32, 32 - bits)});
  return ir::alu(Op::Mul, {ir::cast(top, t), ir::constant(t, std::ldexp(1.0, scale))});
}

// Random bits as a float in [0, 1): no more than the dtype holds, so that nothing is rounded and
// every device agrees. Narrow floats come as the F32 of such a number.
Tensor unit_floats(const Sizes& sizes, DType t, const std::string& device) {
  if (ir::is_group(device)) return unit_floats(sizes, t, detail::first_device(device)).to(device);
  // From the draw until it is seen that these numbers read the state.
  const detail::BuildGuard section;
  const auto words = random_bits(sizes, device);
  if (t == DType::F64) {
    const UOp high = upper_bits(words[0], 32, t, -32), low = upper_bits(words[1], 21, t, -53);
    return detail::wrap(ir::alu(Op::Add, {high, low}), device);
  }
  const int bits = row(t).mantissa_bits + 1;
  return detail::wrap(upper_bits(words[0], bits, DType::F32, -bits), device);
}

// Numbers that are computed with: rounded once at the end.
Tensor unit_floats_to_compute(const Sizes& sizes, const TensorOptions& o) {
  return unit_floats(sizes, detail::compute_dtype(o.dtype), engine::canonical_device(o.device));
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
    const Tensor state = of.state();
    auto [low, high] = advanced(state, u32(state, uint32_t(of.drawn)), uint32_t(of.drawn >> 32));
    const Tensor next = Tensor::stack({state[0], state[1], low, high});
    out.push_back(derive(state, ir::make(Op::Assign, DType::U32, {uop(state), uop(next)})));
  }
  return out;
}

void drop_generator(const std::string& device) {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  g.by_device.erase(device);
}

void generators_realized() {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  for (auto& [device, of] : g.by_device) of.drawn = 0;
}

}  // namespace detail

void Tensor::manual_seed(uint64_t seed) {
  Generators& g = generators();
  std::vector<Tensor> existing;
  {
    std::lock_guard lock(g.mutex);
    g.seed = seed;
    for (auto& [device, of] : g.by_device) {
      of.drawn = 0;
      existing.push_back(of.state());
    }
  }
  // Written in place: functions captured earlier draw from the new seed as well.
  const std::array<uint32_t, 4> words{uint32_t(seed), uint32_t(seed >> 32), 0, 0};
  for (Tensor& state : existing) state.copy_from(words.data(), sizeof words);
}

Tensor Tensor::get_rng_state(const std::string& given) {
  const std::string device = detail::first_device(engine::canonical_device(given));
  const auto [state, drawn] = draw(device, 0);
  std::vector<uint32_t> words = state.to_vector<uint32_t>();
  const uint64_t at = (uint64_t(words[3]) << 32 | words[2]) + drawn;
  words[2] = uint32_t(at);
  words[3] = uint32_t(at >> 32);
  return from(words, {4}, {.device = device});
}

void Tensor::set_rng_state(const Tensor& state, const std::string& given) {
  if (!state.defined() || state.dtype() != DType::U32 || state.numel() != 4)
    fail<InvalidArgument>("set_rng_state: not four words of U32, as get_rng_state() gives them");
  const std::string device =
      detail::first_device(given.empty() ? state.device() : engine::canonical_device(given));
  const std::vector<uint32_t> words = state.to_vector<uint32_t>();
  Tensor target = draw(device, 0).first;
  {
    Generators& g = generators();
    std::lock_guard lock(g.mutex);
    g.by_device[device].drawn = 0;  // what is drawn and not computed yet still sees the old state
  }
  target.copy_from(words.data(), words.size() * sizeof(uint32_t));
}

Tensor Tensor::rand(const Sizes& sizes, const TensorOptions& o) {
  require_float("rand", o.dtype);
  return finished(unit_floats(sizes, o.dtype, engine::canonical_device(o.device)), o);
}
Tensor Tensor::uniform(const Sizes& sizes, double low, double high, const TensorOptions& o) {
  require_float("uniform", o.dtype);
  if (!(low <= high))
    fail<InvalidArgument>("uniform: lower bound {} is above upper bound {}", low, high);
  return finished(unit_floats_to_compute(sizes, o) * (high - low) + low, o);
}

namespace {

// Box-Muller; the cosine as the sine of an argument that needs no reduction: every device agrees.
Tensor standard_normal(const Sizes& sizes, const TensorOptions& o) {
  const Tensor u = unit_floats_to_compute(sizes, o), v = unit_floats_to_compute(sizes, o);
  return ((1.0 - u).log() * -2.0).sqrt() * (1.57079632679489661923 - v * (2 * M_PI)).sin();
}

}  // namespace

Tensor Tensor::randn(const Sizes& sizes, const TensorOptions& o) {
  require_float("randn", o.dtype);
  return finished(standard_normal(sizes, o), o);
}
Tensor Tensor::rand_like() const { return rand(sizes(), {dtype(), device()}); }
Tensor Tensor::randn_like() const { return randn(sizes(), {dtype(), device()}); }
Tensor Tensor::normal(double mean, double deviation, const Sizes& sizes, const TensorOptions& o) {
  require_float("normal", o.dtype);
  if (!(deviation >= 0))
    fail<InvalidArgument>("normal: standard deviation {} is negative", deviation);
  return finished(standard_normal(sizes, o) * deviation + mean, o);
}

Tensor Tensor::randint(int64_t low, int64_t high, const Sizes& sizes, const TensorOptions& o) {
  if (low >= high) fail<InvalidArgument>("randint: no whole number is in [{}, {})", low, high);
  if (uint64_t(high) - uint64_t(low) > (uint64_t(1) << 24))
    fail<InvalidArgument>("randint: a range of {} values is more than 2^24",
                          uint64_t(high) - uint64_t(low));
  const Tensor u = unit_floats(sizes, DType::F32, engine::canonical_device(o.device));
  const Tensor offset = (u * double(high - low)).cast(DType::I32);
  const DType t = is_int(o.dtype) ? o.dtype : DType::I32;
  return finished(
      offset.cast(t) + detail::wrap(ir::constant(Scalar::of_int(t, low)), offset.device()), o);
}

Tensor TensorSorting::randperm(int64_t n, const TensorOptions& o) {
  if (n < 0) fail<InvalidArgument>("randperm: {} elements", n);
  const std::string device = engine::canonical_device(o.device);
  if (ir::is_group(device)) return randperm(n, {o.dtype, detail::first_device(device)}).to(device);
  Tensor order;
  {
    const detail::BuildGuard section;
    const auto words = random_bits({n}, device);
    const UOp shift = ir::constant(Scalar::of_int(DType::U64, 32)),
              high = ir::alu(Op::Shl, {ir::cast(words[0], DType::U64), shift}),
              keys = ir::alu(Op::Or, {high, ir::cast(words[1], DType::U64)});
    order = detail::stable_order(detail::wrap(keys, device));
  }
  return finished(order, o);
}

namespace {

// The first of n running sums that is above a number drawn below their total.
Tensor drawn_again(const Tensor& weights, int64_t count) {
  const Tensor sums = weights.cumsum(-1).contiguous();
  Sizes sizes = weights.sizes();
  sizes.back() = count;
  const int64_t last = int64_t(weights.size(-1)) - 1;
  const Tensor u = Tensor::rand(sizes, {weights.dtype(), weights.device()});
  const Tensor all = sums.narrow(-1, last, 1), at = u * all;
  // A product that is rounded up to all of it would be behind the last.
  const Tensor inside = Tensor::where(at < all, at, 0.0);
  return detail::count_before(sums, inside, true).clamp(std::nullopt, last);
}

// The first of exponentially distributed arrivals at these rates (Efraimidis and Spirakis, 2006).
Tensor drawn_once(const Tensor& weights, int64_t count) {
  const Tensor u = Tensor::rand(weights.sizes(), {weights.dtype(), weights.device()});
  const Tensor arrival = (1.0 - u).log().neg() / weights;
  return detail::first_in_order(detail::order_keys(arrival), count);
}

}  // namespace

Tensor TensorSorting::multinomial(int64_t num_samples, bool replacement) const {
  const Tensor& given = detail::self(this);
  detail::require_numbers("multinomial", given.sizes());
  if (given.dim() < 1 || given.dim() > 2 || given.size(-1) == 0)
    fail<ShapeError>("multinomial: {} are no weights (n) or (m, n)", detail::text(given.sizes()));
  if (num_samples < 1) fail<InvalidArgument>("multinomial: {} samples", num_samples);
  if (!replacement && num_samples > int64_t(given.size(-1)))
    fail<ShapeError>("multinomial: {} samples of {} without replacement", num_samples,
                     given.size(-1));
  const Tensor rates = given.detach().cast(detail::compute_dtype(given.dtype()));
  const Tensor weights = Tensor::where(rates > 0, rates, 0.0);
  return replacement ? drawn_again(weights, num_samples) : drawn_once(weights, num_samples);
}

namespace {

// Inputs (or outputs) of one output (input) of a layer's weight (out, in, ...).
struct Fans {
  double in, out;
};
Fans fans_of(const char* what, const Sizes& sizes) {
  if (sizes.size() < 2)
    fail<ShapeError>("{}: weight {} has fewer than 2 axes (out, in, ...)", what,
                     detail::text(sizes));
  ir::element_count(detail::shape_of(sizes));
  double field = 1;
  for (size_t i = 2; i < sizes.size(); i++) field *= double(sizes[i]);
  return {double(sizes[1]) * field, double(sizes[0]) * field};
}

double kaiming_deviation(const char* what, const Sizes& sizes, double a, FanMode mode) {
  const Fans fans = fans_of(what, sizes);
  return std::sqrt(2 / (1 + a * a)) / std::sqrt(mode == FanMode::In ? fans.in : fans.out);
}
double glorot_deviation(const char* what, const Sizes& sizes, double gain) {
  const Fans fans = fans_of(what, sizes);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}

}  // namespace

Tensor Tensor::kaiming_uniform(const Sizes& sizes, double a, FanMode mode, const TensorOptions& o) {
  const double bound = std::sqrt(3.0) * kaiming_deviation("kaiming_uniform", sizes, a, mode);
  return uniform(sizes, -bound, bound, o);
}
Tensor Tensor::kaiming_normal(const Sizes& sizes, double a, FanMode mode, const TensorOptions& o) {
  return normal(0, kaiming_deviation("kaiming_normal", sizes, a, mode), sizes, o);
}
Tensor Tensor::glorot_uniform(const Sizes& sizes, double gain, const TensorOptions& o) {
  const double bound = std::sqrt(3.0) * glorot_deviation("glorot_uniform", sizes, gain);
  return uniform(sizes, -bound, bound, o);
}
Tensor Tensor::glorot_normal(const Sizes& sizes, double gain, const TensorOptions& o) {
  return normal(0, glorot_deviation("glorot_normal", sizes, gain), sizes, o);
}

}  // namespace tuff
