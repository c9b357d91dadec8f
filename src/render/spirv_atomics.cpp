#include "render/spirv_atomics.h"

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::render {

using ir::Op;

// Nothing else of the kernel reads what is combined: the operation orders nothing.
void SpirvAtomics::combine(Op op, DType t, DType held, Id element, Id x) {
  if (t != held) return exchange(op, t, element, x);
  uint32_t instruction = t == DType::I32 ? spv::OpAtomicSMax : spv::OpAtomicUMax;
  if (op == Op::Add) instruction = spv::OpAtomicIAdd;
  if (t == DType::F32) {
    TUFF_CHECK(op == Op::Add, "an atomic maximum of floats that are no words");
    instruction = spv::OpAtomicFAddEXT;
    m_.extension("SPV_EXT_shader_atomic_float_add");
    m_.capability(spv::CapabilityAtomicFloat32AddEXT);
  }
  m_.value(instruction, t_.type(t),
           {element, t_.word(spv::ScopeDevice), t_.word(spv::MemorySemanticsMaskNone), x});
}

// Until no other invocation has changed the element since it was read.
void SpirvAtomics::exchange(Op op, DType t, Id element, Id x) {
  const Id word = t_.type(DType::U32);
  const Id scope = t_.word(spv::ScopeDevice), relaxed = t_.word(spv::MemorySemanticsMaskNone);
  const auto as = [&](Id v, Id type) { return m_.value(spv::OpBitcast, type, {v}); };
  const Id first = m_.value(spv::OpAtomicLoad, word, {element, scope, relaxed});
  const Id before = m_.block(), header = m_.fresh(), body = m_.fresh(), next = m_.fresh(),
           merge = m_.fresh(), old = m_.fresh(), seen = m_.fresh();
  m_.emit(spv::OpBranch, {header});
  m_.label(header);
  m_.emit(spv::OpPhi, {word, old, first, before, seen, next});
  m_.emit(spv::OpLoopMerge, {merge, next, spv::LoopControlMaskNone});
  m_.emit(spv::OpBranch, {body});
  m_.label(body);
  const Id combined = as(ops_.binary(op, t, as(old, t_.type(t)), x), word);
  m_.emit(spv::OpAtomicCompareExchange,
          {word, seen, element, scope, relaxed, relaxed, combined, old});
  const Id done = m_.value(spv::OpIEqual, t_.boolean(), {seen, old});
  m_.emit(spv::OpBranchConditional, {done, merge, next});
  m_.label(next);
  m_.emit(spv::OpBranch, {header});
  m_.label(merge);
}

}  // namespace tuff::render
