#include "devices/amd/handle_binding.h"

#include <algorithm>

#include "base/check.h"
#include "devices/amd/program.h"
#include "devices/amd/signal.h"

namespace tuff::devices::amd {

KernelCode HandleBinding::kernel(const hcq::Program& program) const {
  const auto* own = dynamic_cast<const AmdProgram*>(&program);
  if (!own) fail<InvalidArgument>("{}: no program of an AMD GPU", program.name());
  return own->kernel();
}

uint64_t HandleBinding::signal_address(const hcq::Signal& signal) const {
  const auto* own = dynamic_cast<const AmdSignal*>(&signal);
  if (!own) fail<Unsupported>("AMD: a queue can wait for and raise signals of AMD GPUs alone");
  return own->address();
}

uint32_t private_bytes(const hcq::CommandList& list, const Binding& binding) {
  uint32_t most = 0;
  for (const hcq::Command& c : list.commands) {
    const auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
    if (d && d->program) most = std::max(most, binding.kernel(*d->program).private_bytes);
  }
  return most;
}

}  // namespace tuff::devices::amd
