#include "engine/jit/copy_kernel.h"

namespace tuff::engine {

using namespace ir;

const LoadedKernel& copy_kernel(Device& device, DType t, int64_t count, bool counted) {
  const UOp i = range(index_const(count), 0, AxisKind::Loop);
  const UOp to = param(0, t, count), from = param(1, t, count);
  const auto element = [&](const UOp& memory) {
    if (!counted) return make(Op::Index, DType::Void, {memory, i});
    return make(Op::Index, DType::Void, {memory, i, lt(i, variable("n", 0, count))});
  };
  const UOp value = make(Op::Load, DType::Void, {element(from)});
  const UOp store = make(Op::Store, DType::Void, {element(to), value});
  const UOp ast = sink(std::vector<UOp>{make(Op::End, DType::Void, {store, i})});
  return *device.programs().get({&ast, 1}).at(0);
}

}  // namespace tuff::engine
