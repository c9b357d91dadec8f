// Instruction handlers: what each operation does, as rows of (operation, function). One table per
// family of instructions; an operation stands in one of them. Called when code is decoded.
#pragma once

#include <span>

#include "emu/rdna/lanes.h"

namespace tuff::emu::rdna {

struct Handler {
  Op op;
  Execute execute;
  Execute with_avx2 = nullptr;  // the same, compiled for processors that have AVX2 and FMA
};

std::span<const Handler> float_handlers();
std::span<const Handler> integer_handlers();
std::span<const Handler> convert_handlers();
std::span<const Handler> compare_handlers();
std::span<const Handler> mask_handlers();  // carries, selections, lanes
std::span<const Handler> packed_handlers();
std::span<const Handler> matrix_handlers();
std::span<const Handler> scalar_handlers();
std::span<const Handler> control_handlers();
std::span<const Handler> memory_handlers();
std::span<const Handler> buffer_handlers();

Execute find_execute(Op op);  // null if no table has it; the fastest that the processor has
const Handler* find_handler(Op op);
bool processor_has_avx2();

// Rows that read as algebra: a, b and c are the sources.
#define TUFF_RDNA_ROW(op, call) {Op::op, [](Wave& w, const Instruction& i) { call; }}
// For what is done lane by lane: compiled twice, with all that it calls, so that its loops take the
// vectors that the processor has.
#ifdef __x86_64__
#define TUFF_RDNA_LANES(op, call)                       \
  {Op::op, [](Wave& w, const Instruction& i) { call; }, \
   [](Wave& w, const Instruction& i)                    \
       __attribute__((target("avx2,fma,bmi,bmi2,popcnt"), flatten)) { call; }}
#else
#define TUFF_RDNA_LANES(op, call) TUFF_RDNA_ROW(op, call)
#endif
#define VECTOR1(op, R, A, expr) \
  TUFF_RDNA_LANES(op, (vector1<R, A>(w, i, [](auto a) { return Computed<R>::type(expr); })))
#define VECTOR2(op, R, A, B, expr) \
  TUFF_RDNA_LANES(                 \
      op, (vector2<R, A, B>(w, i, [](auto a, auto b) { return Computed<R>::type(expr); })))
#define VECTOR3(op, R, A, B, C, expr)       \
  TUFF_RDNA_LANES(op, (vector3<R, A, B, C>( \
                          w, i, [](auto a, auto b, auto c) { return Computed<R>::type(expr); })))
// The same with one type for sources and result.
#define UNARY(op, T, expr) VECTOR1(op, T, T, expr)
#define BINARY(op, T, expr) VECTOR2(op, T, T, T, expr)
#define TERNARY(op, T, expr) VECTOR3(op, T, T, T, T, expr)

}  // namespace tuff::emu::rdna
