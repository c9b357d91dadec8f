// What every kernel here starts with: device addresses in an argument block, whose own address is the
// only push constant. A kernel declares its ARGS (buffer references first, then int scalars).
#extension GL_EXT_buffer_reference : require

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Vectors { vec4 at[]; };

#define ARGUMENTS(members)                                                                \
  layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Args members; \
  layout(push_constant) uniform Push { Args args; }

#define VECTOR(name, i) args.name.at[i]
