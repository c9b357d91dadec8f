// libFuzzer's entry point for PTX: whatever the text, it is parsed or refused, and what is parsed
// runs, with findings or without.
#include <tuff/error.h>

#include "emu/ptx/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace ptx = tuff::emu::ptx;
  try {
    const auto module = ptx::load({reinterpret_cast<const char*>(data), size});
    for (const tuff::emu_api::PtxKernelInfo& kernel : module->kernels()) {
      std::vector<uint8_t> memory(4096);
      tuff::emu_api::PtxLaunchRequest r;
      r.module = module.get();
      r.kernel = kernel.name;
      r.grid = {2, 1, 1};
      r.block =
          kernel.required_block[0] ? kernel.required_block : std::array<uint32_t, 3>{40, 1, 1};
      r.dynamic_shared_bytes = 256;
      r.parameters.resize(kernel.parameter_bytes);
      if (r.parameters.size() >= 8) r.parameters[1] = 0x10;  // the first one points to memory
      r.memory = {{0x1000, memory.size(), memory.data(), true}};
      r.instruction_budget = 2000;
      ptx::execute(r);
    }
  } catch (const tuff::CompileError&) {     // what texts are answered with that are no PTX
  } catch (const tuff::InvalidArgument&) {  // and launches that a kernel does not take
  }
  return 0;
}
