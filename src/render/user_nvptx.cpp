#include "render/user_nvptx.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/check.h"

namespace tuff::render {
namespace {

// Sources: OpenCL C 1.2, sections 6.1 and 6.12; PTX ISA 7.8 for the special registers, ex2.approx
// and membar.
constexpr const char* kOpenclC = R"c(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define TUFF_F static inline __attribute__((overloadable, always_inline))
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned uint;
typedef unsigned long ulong; typedef ulong size_t; typedef long ptrdiff_t; typedef ulong uintptr_t;
#define TUFF_VECTORS(T) typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4))); \
  typedef T T##8 __attribute__((ext_vector_type(8))); \
  typedef T T##16 __attribute__((ext_vector_type(16)));
TUFF_VECTORS(char) TUFF_VECTORS(uchar) TUFF_VECTORS(short) TUFF_VECTORS(ushort)
TUFF_VECTORS(int) TUFF_VECTORS(uint) TUFF_VECTORS(long) TUFF_VECTORS(ulong)
TUFF_VECTORS(half) TUFF_VECTORS(float) TUFF_VECTORS(double)
#define TUFF_AXES(name, kind) TUFF_F size_t name(uint axis) { \
  return (uint)(axis == 0   ? __nvvm_read_ptx_sreg_##kind##_x() \
                : axis == 1 ? __nvvm_read_ptx_sreg_##kind##_y() \
                            : __nvvm_read_ptx_sreg_##kind##_z()); }
TUFF_AXES(get_local_id, tid) TUFF_AXES(get_group_id, ctaid)
TUFF_AXES(get_local_size, ntid) TUFF_AXES(get_num_groups, nctaid)
TUFF_F size_t get_global_id(uint axis) {
  return get_group_id(axis) * get_local_size(axis) + get_local_id(axis); }
TUFF_F size_t get_global_size(uint axis) { return get_num_groups(axis) * get_local_size(axis); }
TUFF_F size_t get_global_offset(uint axis) { return 0; }
TUFF_F uint get_work_dim(void) { return 3; }
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
TUFF_F void barrier(uint fences) { __syncthreads(); }
TUFF_F void mem_fence(uint fences) { __nvvm_membar_gl(); }
#define TUFF_ATOMIC(T, space, name, op) TUFF_F T name(volatile space T* place, T x) { \
  return __scoped_atomic_fetch_##op(place, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); }
#define TUFF_ATOMICS(T, space) TUFF_ATOMIC(T, space, atomic_add, add) \
  TUFF_ATOMIC(T, space, atomic_min, min) TUFF_ATOMIC(T, space, atomic_max, max) \
  TUFF_ATOMIC(T, space, atomic_and, and) TUFF_ATOMIC(T, space, atomic_or, or) \
  TUFF_F T atomic_inc(volatile space T* place) { return atomic_add(place, (T)1); }
TUFF_ATOMICS(int, __global) TUFF_ATOMICS(uint, __global)
TUFF_ATOMICS(int, __local) TUFF_ATOMICS(uint, __local)
#define TUFF_ORDER(T) TUFF_F T min(T a, T b) { return b < a ? b : a; } \
  TUFF_F T max(T a, T b) { return a < b ? b : a; } \
  TUFF_F T clamp(T x, T low, T high) { return min(max(x, low), high); }
TUFF_ORDER(int) TUFF_ORDER(uint) TUFF_ORDER(long) TUFF_ORDER(ulong)
TUFF_ORDER(float) TUFF_ORDER(double)
#define TUFF_MATH(T, f) TUFF_F T fabs(T x) { return __builtin_fabs##f(x); } \
  TUFF_F T floor(T x) { return __builtin_floor##f(x); } \
  TUFF_F T ceil(T x) { return __builtin_ceil##f(x); } \
  TUFF_F T trunc(T x) { return __builtin_trunc##f(x); } \
  TUFF_F T rint(T x) { return __builtin_rint##f(x); } \
  TUFF_F T sqrt(T x) { return __builtin_sqrt##f(x); } \
  TUFF_F T rsqrt(T x) { return 1 / sqrt(x); } \
  TUFF_F T fma(T a, T b, T c) { return __builtin_fma##f(a, b, c); } \
  TUFF_F T mad(T a, T b, T c) { return fma(a, b, c); } \
  TUFF_F T fmin(T a, T b) { return __builtin_fmin##f(a, b); } \
  TUFF_F T fmax(T a, T b) { return __builtin_fmax##f(a, b); }
TUFF_MATH(float, f) TUFF_MATH(double, )
TUFF_F float exp2(float x) { return __nvvm_ex2_approx_f(x); }
#define as_int(x) __builtin_astype(x, int)
#define as_uint(x) __builtin_astype(x, uint)
#define as_float(x) __builtin_astype(x, float)
/* x = n ln 2 + r, with ln 2 in two parts, of which the first times n is exact. 2^n is made of two
   factors: one alone may be beyond a float where the result is not. */
TUFF_F float exp(float x) {
  const float within = clamp(x, -104.0f, 89.0f);
  const float n = rint(within * 0x1.715476p+0f);
  const float r = fma(n, -0x1.7f7d1cp-20f, fma(n, -0x1.62e4p-1f, within));
  const int whole = (int)n, half_of_it = whole / 2;
  const float factor = as_float((half_of_it + 127) << 23) * exp2(r * 0x1.715476p+0f) *
                       as_float((whole - half_of_it + 127) << 23);
  return x != x ? x : factor; }
)c";

constexpr std::string_view kLoad = "ld.param.u64";

// In the place of the load of a parameter, whose number stands at `number_at`, that of its word of
// the block.
std::string from_block(const std::string& line, const std::string& symbol, size_t number_at) {
  const size_t load = line.find(kLoad), comma = line.find(',', load);
  const char* last = line.data() + line.size();
  size_t number = 0;
  const auto [end, error] = std::from_chars(line.data() + number_at, last, number);
  if (load == std::string::npos || comma == std::string::npos || error != std::errc() ||
      end == last || *end != ']')
    fail<CompileError>("kernel {}: its PTX has \"{}\" where a buffer's address is expected", symbol,
                       line);
  const std::string before = line.substr(0, load);
  const size_t first = line.find_first_not_of(" \t", load + kLoad.size());
  const std::string to = line.substr(first, comma - first);
  return fmt::format("{0}{1} \t{2}, [{3}_param_0];\n{0}ld.global.nc.u64 \t{2}, [{2}+{4}];\n",
                     before, kLoad, to, symbol, 8 * number);
}

}  // namespace

std::string nvptx_user_text(const std::string& text) { return kOpenclC + text; }

std::string with_argument_block(const std::string& ptx, const std::string& symbol) {
  const std::string entry = fmt::format(".entry {}(", symbol),
                    parameter = fmt::format("{}_param_", symbol);
  const size_t begin = ptx.find(entry), end = ptx.find(')', begin);
  if (begin == std::string::npos || end == std::string::npos)
    fail<CompileError>("kernel {}: the compiler's PTX has no such kernel", symbol);
  std::string out =
      ptx.substr(0, begin) + entry + fmt::format("\n\t.param .u64 {}0\n", parameter);
  for (size_t at = end; at < ptx.size();) {
    const size_t stop = std::min(ptx.find('\n', at), ptx.size() - 1);
    const std::string line = ptx.substr(at, stop - at);
    const size_t used = line.find("[" + parameter);
    if (used == std::string::npos) out += line + "\n";
    else out += from_block(line, symbol, used + 1 + parameter.size());
    at = stop + 1;
  }
  return out;
}

}  // namespace tuff::render
