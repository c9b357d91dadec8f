#include "engine/jit/validated.h"

#include <utility>

#include "engine/jit/rebind.h"

namespace tuff::engine {

ValidatedCalls::ValidatedCalls(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                               std::vector<ir::UOp> variables,
                               std::unique_ptr<ReplayStrategy> counted)
    : calls_(std::move(calls)),
      captured_(inputs.begin(), inputs.end()),
      variables_(std::move(variables)),
      counted_(std::move(counted)) {}

void ValidatedCalls::replay(const ReplayInputs& inputs) {
  std::vector<BoundCall> calls = calls_;
  VariableValues values;
  for (size_t i = 0; i < variables_.size(); i++)
    values[variables_[i]->get<ir::VariableArg>().name] = inputs.values[i];
  for (BoundCall& c : calls) {
    rebind(c, captured_, inputs.buffers);
    auto* k = std::get_if<BoundKernel>(&c);
    if (k && !values.empty()) bind_variables(*k, values);
  }
  execute(calls);
}

}  // namespace tuff::engine
