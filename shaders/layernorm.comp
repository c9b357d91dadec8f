// Row by row: y = (x - mean) / sqrt(variance + 1e-5) * w + b; `count` vectors of four floats a row, a multiple of 8.
// One walk gives both moments, of what x is above the row's first element, so that nothing cancels.
// Arguments: y, x, w, b; count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"
ARGUMENTS({ Pairs y; Vectors x; Vectors w; Vectors b; int count; });

void main() {
  const int lane = int(gl_SubgroupInvocationID), row = int(gl_WorkGroupID.x) * args.count;
  const float first = VECTOR(x, row).x;
  vec4 sum = vec4(0), squares = vec4(0);
  for (int i = lane; i < args.count; i += 8) {
    const vec4 v = VECTOR(x, row + i) - first;
    sum += v;
    squares += v * v;
  }
  const float parts = sum_of(sum), square_parts = sum_of(squares), n = float(4 * args.count);
  const float mean = FOLD(plus, parts) / n;
  const float scale = inversesqrt(FOLD(plus, square_parts) / n - mean * mean + 1e-5);
  const float shift = mean + first;
  for (int i = lane; i < args.count; i += 8)
    STORE(args.y, row + i, (VECTOR(x, row + i) - shift) * scale * VECTOR(w, i) + VECTOR(b, i));
}
