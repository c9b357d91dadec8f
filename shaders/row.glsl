// A workgroup of 8 lanes, which are one subgroup: what kernels of rows share. A row is walked in
// vectors of four floats, lane by lane; stores go as 64-bit words, which cost a driver that takes
// lanes one by one half as much. The words are made by arithmetic: what lavapipe's compiler makes of
// packUint2x32 is a register of 512 bits, and with it every sum in a loop that ends there.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "argument_block.glsl"
layout(local_size_x = 8) in;

layout(buffer_reference, std430, buffer_reference_align = 8) buffer Pairs { uint64_t at[]; };

#define WORD(low, high) \
  (uint64_t(floatBitsToUint(low)) | uint64_t(floatBitsToUint(high)) << 32)
#define STORE(to, index, v)                                                                     \
  {                                                                                             \
    const vec4 value = v;                                                                       \
    to.at[2 * (index)] = WORD(value.x, value.y);                                                \
    to.at[2 * (index) + 1] = WORD(value.z, value.w);                                            \
  }

#define FOLD(op, x)                                                                              \
  op(op(op(subgroupShuffle(x, 0u), subgroupShuffle(x, 1u)),                                      \
        op(subgroupShuffle(x, 2u), subgroupShuffle(x, 3u))),                                     \
     op(op(subgroupShuffle(x, 4u), subgroupShuffle(x, 5u)),                                      \
        op(subgroupShuffle(x, 6u), subgroupShuffle(x, 7u))))

float plus(float a, float b) { return a + b; }
float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
