// c = a b, of m x k and k x n floats, row by row; m a multiple of 32, n of 64, k of 4.
// A subgroup of 8 lanes makes 32 rows of 64 columns: rows in lanes, four to a lane. Both factors are
// read as texels. Of b each lane reads an eighth of four rows, and hands it round by shuffles from
// a constant lane, which are one permutation each. A column is finished before the next begins: the
// four steps of it and all of a stay in registers, and each sum is touched once. Arguments: c, a, b;
// n, k.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "row.glsl"
ARGUMENTS({ Pairs c; Words a; Words b; int n; int k; });
TEXELS(0, a);
TEXELS(1, b);

const int kRows = 4, kColumns = 16;  // of a lane, in rows and texels
const int kFetches = kColumns / 8;   // of a row of b

void main() {
  const int lane = int(gl_SubgroupInvocationID), n4 = args.n / 4, k4 = args.k / 4;
  const int row = int(gl_WorkGroupID.y) * 8 * kRows + lane, column = int(gl_WorkGroupID.x) * kColumns;
  float sum[kRows][kColumns][4];
  [[unroll]] for (int r = 0; r < kRows; ++r)
    [[unroll]] for (int q = 0; q < kColumns; ++q)
      [[unroll]] for (int e = 0; e < 4; ++e) sum[r][q][e] = 0;
  for (int step = 0; step < k4; ++step) {
    vec4 x[kRows], part[4][kFetches];
    [[unroll]] for (int r = 0; r < kRows; ++r) x[r] = FLOATS(a, (row + 8 * r) * k4 + step);
    [[unroll]] for (int s = 0; s < 4; ++s)
      [[unroll]] for (int f = 0; f < kFetches; ++f)
        part[s][f] = FLOATS(b, (4 * step + s) * n4 + column + 8 * f + lane);
    [[unroll]] for (int q = 0; q < kColumns; ++q) {
      [[unroll]] for (int e = 0; e < 4; ++e) {
        vec4 y;
        [[unroll]] for (int s = 0; s < 4; ++s) y[s] = subgroupShuffle(part[s][q / 8][e], uint(q % 8));
        [[unroll]] for (int r = 0; r < kRows; ++r) sum[r][q][e] += dot(x[r], y);
      }
    }
  }
  [[unroll]] for (int r = 0; r < kRows; ++r)
    [[unroll]] for (int q = 0; q < kColumns; ++q)
      STORE(args.c, (row + 8 * r) * n4 + column + q,
            vec4(sum[r][q][0], sum[r][q][1], sum[r][q][2], sum[r][q][3]));
}
