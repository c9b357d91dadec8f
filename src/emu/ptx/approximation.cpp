// The approximations of f32 and f64. PTX ISA 7.8, 9.7.3 bounds their errors: here each is computed
// in f64 and rounded once, which is within every bound, and may be better than hardware is.
#include <bit>

#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

float as_f32(double value) {
  const float out = float(value);
  return out != out ? std::bit_cast<float>(0x7FFFFFFFu) : out;
}

// 9.7.3.8: the reciprocal of what is above 2^126 is taken for 0.
double quotient_by_reciprocal(double a, double b) {
  const bool huge = std::fabs(b) > 0x1p126 && std::isfinite(b);
  return huge ? a * std::copysign(0.0, b) : a / b;
}

template <size_t sources, class F>
Execute approximate(F) {
  return [](Warp& w, const Instruction& i, uint32_t lanes) {
    const auto in = [&](float value) { return i.flushes ? flushed(value) : value; };
    const auto out = [&](double value) {
      const float rounded = as_f32(value);
      return i.flushes ? flushed(rounded) : rounded;
    };
    if constexpr (sources == 1)
      apply<float, float>(w, i, lanes, [&](float a) { return out(F{}(double(in(a)))); });
    else
      apply<float, float, float>(
          w, i, lanes, [&](float a, float b) { return out(F{}(double(in(a)), double(in(b)))); });
  };
}

Execute single(const Form& f) {
  if (f.base == "div" && f.has("full"))
    return approximate<2>([](double a, double b) { return a / b; });
  if (f.base == "div")
    return approximate<2>([](double a, double b) { return quotient_by_reciprocal(a, b); });
  if (f.base == "rcp") return approximate<1>([](double a) { return 1 / a; });
  if (f.base == "sqrt") return approximate<1>([](double a) { return std::sqrt(a); });
  if (f.base == "rsqrt") return approximate<1>([](double a) { return 1 / std::sqrt(a); });
  if (f.base == "sin") return approximate<1>([](double a) { return std::sin(a); });
  if (f.base == "cos") return approximate<1>([](double a) { return std::cos(a); });
  if (f.base == "lg2") return approximate<1>([](double a) { return std::log2(a); });
  if (f.base == "ex2") return approximate<1>([](double a) { return std::exp2(a); });
  return approximate<1>([](double a) { return std::tanh(a); });
}

// 9.7.3.14, 9.7.3.18: of the upper word alone, into the upper word.
double upper_word(double value) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(value) & ~0xFFFFFFFFull);
}

Execute of_doubles(const Form& f) {
  if (f.base == "rcp")
    return rows<double, double>(
        [](double a) { return upper_word(flushed(1 / flushed(upper_word(a)))); });
  if (f.has("ftz"))
    return rows<double, double>(
        [](double a) { return upper_word(flushed(1 / std::sqrt(flushed(upper_word(a))))); });
  return rows<double, double>([](double a) { return 1 / std::sqrt(a); });
}

}  // namespace

void make_approximation(const Form& f, Instruction& i) {
  i.execute = f.type() == Type::F64 ? of_doubles(f) : single(f);
}

}  // namespace tuff::emu::ptx
