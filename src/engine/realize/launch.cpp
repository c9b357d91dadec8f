#include "engine/realize/launch.h"

namespace tuff::engine {

int32_t input_slot(const Buffer& b, std::span<const Ref<Buffer>> inputs) {
  for (size_t i = 0; i < inputs.size(); i++) {
    const Buffer& in = *inputs[i];
    if (&b.root() == &in.root() && b.byte_offset() >= in.byte_offset() &&
        b.byte_offset() + b.size_bytes() <= in.byte_offset() + in.size_bytes()) {
      return int32_t(i);
    }
  }
  return -1;
}

hcq::LaunchOperand operand_of(Buffer& b, std::span<const Ref<Buffer>> inputs, bool read,
                              bool write) {
  hcq::LaunchOperand o;
  o.input = input_slot(b, inputs);
  o.size_bytes = b.size_bytes();
  o.read = read;
  o.write = write;
  if (o.input >= 0) {
    o.offset = b.byte_offset() - inputs[size_t(o.input)]->byte_offset();
  } else {
    o.span = b.span();
  }
  return o;
}

hcq::Launch launch_of(const BoundKernel& k, std::span<const Ref<Buffer>> inputs) {
  hcq::Launch l;
  l.program = k.kernel->program.get();
  l.cost_ns = k.kernel->expected_ns;
  l.operands.reserve(k.buffers.size());
  for (size_t i = 0; i < k.buffers.size(); i++) {
    const auto& a = k.kernel->buffers[i];
    l.operands.push_back(operand_of(*k.buffers[i], inputs, a.read, a.written));
  }
  for (const int32_t value : k.scalars) l.scalars.push_back({value});
  l.groups = k.groups;
  return l;
}

hcq::Transfer transfer_of(const BoundCopy& copy, std::span<const Ref<Buffer>> inputs) {
  hcq::Transfer t{operand_of(*copy.dst, inputs, false, true),
                  operand_of(*copy.src, inputs, true, false)};
  // A span may be longer than its elements: memory comes in words.
  for (hcq::LaunchOperand* o : {&t.dst, &t.src})
    if (o->span) o->span.size_bytes = copy.dst->size_bytes();
  return t;
}

}  // namespace tuff::engine
