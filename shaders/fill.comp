// dst[i] = value + i * step for i < count. Arguments: dst; count, value, step.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "argument_block.glsl"
layout(local_size_x = 64) in;
ARGUMENTS({ Words dst; int count; int value; int step; });

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < uint(args.count)) args.dst.at[i] = uint(args.value) + i * uint(args.step);
}
