// Device probe: what no feature bit tells. Arguments: out; trips (loop iterations to ask for), one
// (the value 1, which a compiler cannot fold).
// out[0] = iterations that were really made, out[1] = bits of -0.0 * one, out[2] = bits of one / 0.0,
// out[3] = bits of 2^24 + one (round to nearest even gives 2^24).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "argument_block.glsl"
layout(local_size_x = 1) in;
ARGUMENTS({ Words result; int trips; int one; });

void main() {
  uint made = 0u;
  // The state of a generator as loop condition, so that no compiler finds the closed form.
  uint x = uint(args.one);
  for (int i = 0; i < args.trips; ++i) {
    x = x * 1664525u + 1013904223u;
    if (x != 0xffffffffu || i >= 0) ++made;
    args.result.at[4] = x;
  }
  float one = float(args.one);
  args.result.at[0] = made;
  args.result.at[1] = floatBitsToUint(uintBitsToFloat(0x80000000u) * one);
  args.result.at[2] = floatBitsToUint(one / (one - one));
  args.result.at[3] = floatBitsToUint(16777216.0 * one + one);
}
