// y[group] = the sum of `count` vectors of four floats of x, which are a multiple of 64; one group and one count
// more sum those sums. Arguments: y, x; count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Floats y; Vectors x; int count; });

void main() {
  const int begin = int(gl_WorkGroupID.x) * args.count + int(gl_SubgroupInvocationID);
  vec4 sum[8];
  for (int j = 0; j < 8; ++j) sum[j] = vec4(0);
  for (int i = 0; i < args.count; i += 64)
    for (int j = 0; j < 8; ++j) sum[j] += VECTOR(x, begin + i + 8 * j);
  const vec4 all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  const float mine = sum_of(all);
  args.y.at[gl_WorkGroupID.x] = FOLD(plus, mine);
}
