// What each operation does, as rows of (operation, function). One table per family of instructions;
// an operation stands in one of them. Called when a code object is prepared.
#pragma once

#include <span>

#include "emu/rdna/lanes.h"

namespace tuff::emu::rdna {

struct Meaning {
  Op op;
  Execute execute;
  Execute with_avx2 = nullptr;  // the same, compiled for processors that have AVX2 and FMA
};

std::span<const Meaning> float_meanings();
std::span<const Meaning> integer_meanings();
std::span<const Meaning> convert_meanings();
std::span<const Meaning> compare_meanings();
std::span<const Meaning> mask_meanings();  // carries, selections, lanes
std::span<const Meaning> packed_meanings();
std::span<const Meaning> matrix_meanings();
std::span<const Meaning> scalar_meanings();
std::span<const Meaning> control_meanings();
std::span<const Meaning> memory_meanings();
std::span<const Meaning> buffer_meanings();

Execute find_execute(Op op);  // null if no table has it; the fastest that the processor has
const Meaning* find_meaning(Op op);
bool processor_has_avx2();

// Rows that read as algebra: a, b and c are the sources.
#define TUFF_RDNA_ROW(op, call) {Op::op, [](Wave& w, const Instruction& i) { call; }}
// Of what is done lane by lane: compiled twice, with all that it calls, so that its loops take the
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

}  // namespace tuff::emu::rdna
