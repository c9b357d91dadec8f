// c = a b, of m x k and k x n floats, row by row; m a multiple of 32, n of 16, k of 4.
// A subgroup of 8 lanes makes 32 rows of 16 columns: rows in lanes, four to a lane. Both factors are
// read as texels. Of b each lane reads an eighth of four rows, and hands it round by shuffles from
// a constant lane, which are one permutation each. Arguments: c, a, b; n, k.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Pairs c; Words a; Words b; int n; int k; });
TEXELS(0, a);
TEXELS(1, b);

const int kRows = 4, kColumns = 4;  // of a lane, in rows and texels

void main() {
  const int lane = int(gl_SubgroupInvocationID), n4 = args.n / 4, k4 = args.k / 4;
  const int row = int(gl_WorkGroupID.y) * 8 * kRows + lane, column = int(gl_WorkGroupID.x) * kColumns;
  vec4 sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int q = 0; q < kColumns; ++q) sum[r][q] = vec4(0);
  int at_a[kRows];
  for (int r = 0; r < kRows; ++r) at_a[r] = (row + 8 * r) * k4;
  // Lane i reads texel i % 4 of row i / 4, and of the row two further.
  int at_b = (lane / 4) * n4 + column + lane % 4;
  for (int step = 0; step < k4; ++step, at_b += 4 * n4) {
    vec4 x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = FLOATS(a, at_a[r] + step);
    const vec4 part[2] = {FLOATS(b, at_b), FLOATS(b, at_b + 2 * n4)};
    for (int s = 0; s < 4; ++s) {
      for (int q = 0; q < kColumns; ++q) {
        const uint from = uint(s % 2 * 4 + q);
        const vec4 y = vec4(subgroupShuffle(part[s / 2].x, from), subgroupShuffle(part[s / 2].y, from),
                            subgroupShuffle(part[s / 2].z, from), subgroupShuffle(part[s / 2].w, from));
        for (int r = 0; r < kRows; ++r) sum[r][q] += x[r][s] * y;
      }
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int q = 0; q < kColumns; ++q) STORE(args.c, (row + 8 * r) * n4 + column + q, sum[r][q]);
}
