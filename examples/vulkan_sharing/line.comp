// The shader of the application: v = v * scale + offset + index * slope.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values { float v[]; };
layout(push_constant) uniform Line { uint count; float scale, offset, slope; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) v[i] = v[i] * scale + offset + float(i) * slope;
}
