// c = a b, of m x k and k x n floats, row by row; m and n multiples of 64, k of 8.
// A subgroup of 8 lanes makes 64 rows of 64 columns: rows in lanes, eight to a lane. Both factors
// are read as vectors of four. Of b each lane reads an eighth of eight rows, and hands it round by shuffles
// from a constant lane, which are one permutation each. A column is finished before the next begins,
// so that each sum, which a loop stores through a mask, is touched once in eight steps. Arguments:
// c, a, b; n, k.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "row.glsl"
ARGUMENTS({ Pairs c; Vectors a; Vectors b; int n; int k; });

const int kRows = 8, kColumns = 16, kSteps = 2;  // of a lane, in rows and vectors
const int kFetches = kColumns / 8;               // of a row of b

void main() {
  const int lane = int(gl_SubgroupInvocationID), n4 = args.n / 4, k4 = args.k / 4;
  const int row = int(gl_WorkGroupID.y) * 8 * kRows + lane, column = int(gl_WorkGroupID.x) * kColumns;
  float sum[kRows][kColumns][4];
  [[unroll]] for (int r = 0; r < kRows; ++r)
    [[unroll]] for (int q = 0; q < kColumns; ++q)
      [[unroll]] for (int e = 0; e < 4; ++e) sum[r][q][e] = 0;
  for (int step = 0; step < k4; step += kSteps) {
    vec4 x[kRows][kSteps], part[4 * kSteps][kFetches];
    [[unroll]] for (int r = 0; r < kRows; ++r)
      [[unroll]] for (int t = 0; t < kSteps; ++t) x[r][t] = VECTOR(a, (row + 8 * r) * k4 + step + t);
    [[unroll]] for (int s = 0; s < 4 * kSteps; ++s)
      [[unroll]] for (int f = 0; f < kFetches; ++f)
        part[s][f] = VECTOR(b, (4 * step + s) * n4 + column + 8 * f + lane);
    [[unroll]] for (int q = 0; q < kColumns; ++q) {
      [[unroll]] for (int e = 0; e < 4; ++e) {
        vec4 y[kSteps];
        [[unroll]] for (int s = 0; s < 4 * kSteps; ++s)
          y[s / 4][s % 4] = subgroupShuffle(part[s][q / 8][e], uint(q % 8));
        [[unroll]] for (int r = 0; r < kRows; ++r) {
          float products = dot(x[r][0], y[0]);
          [[unroll]] for (int t = 1; t < kSteps; ++t) products += dot(x[r][t], y[t]);
          sum[r][q][e] += products;
        }
      }
    }
  }
  [[unroll]] for (int r = 0; r < kRows; ++r)
    [[unroll]] for (int q = 0; q < kColumns; ++q)
      STORE(args.c, (row + 8 * r) * n4 + column + q,
            vec4(sum[r][q][0], sum[r][q][1], sum[r][q][2], sum[r][q][3]));
}
