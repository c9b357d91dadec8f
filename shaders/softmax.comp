// Row by row: y = exp(x - max) / sum of exp(x - max); `count` vectors of four floats a row, a multiple of 8.
// Arguments: y, x; count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Pairs y; Vectors x; int count; });

void main() {
  const int lane = int(gl_SubgroupInvocationID), row = int(gl_WorkGroupID.x) * args.count;
  vec4 largest = VECTOR(x, row + lane);
  for (int i = lane; i < args.count; i += 8) largest = max(largest, VECTOR(x, row + i));
  const float own = max(max(largest.x, largest.y), max(largest.z, largest.w));
  const vec4 most = vec4(FOLD(max, own) * 1.44269504);
  vec4 sum = vec4(0);
  for (int i = lane; i < args.count; i += 8) sum += exp2(VECTOR(x, row + i) * 1.44269504 - most);
  const float part = sum_of(sum);
  const float scale = 1 / FOLD(plus, part);
  for (int i = lane; i < args.count; i += 8)
    STORE(args.y, row + i, exp2(VECTOR(x, row + i) * 1.44269504 - most) * scale);
}
