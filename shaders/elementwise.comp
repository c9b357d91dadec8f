// y = 2x + 1; a group does `count` vectors of four, a multiple of 8. Arguments: y, x; count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Pairs y; Vectors x; int count; });

void main() {
  const int lane = int(gl_SubgroupInvocationID), begin = int(gl_WorkGroupID.x) * args.count;
  for (int i = lane; i < args.count; i += 8) STORE(args.y, begin + i, VECTOR(x, begin + i) * 2 + 1);
}
