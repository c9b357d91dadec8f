// y = 2x + 1; a group does `count` texels, a multiple of 8. Arguments: y, x; count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Pairs y; Words x; int count; });
TEXELS(0, x);

void main() {
  const int lane = int(gl_SubgroupInvocationID), begin = int(gl_WorkGroupID.x) * args.count;
  for (int i = lane; i < args.count; i += 8) STORE(args.y, begin + i, FLOATS(x, begin + i) * 2 + 1);
}
