// dst[i] = src[i] + add for i < count: a copy whose operands can be re-bound. Arguments: dst, src;
// count, add.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "argument_block.glsl"
layout(local_size_x = 64) in;
ARGUMENTS({ Words dst; Words src; int count; int add; });

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < uint(args.count)) args.dst.at[i] = args.src.at[i] + uint(args.add);
}
