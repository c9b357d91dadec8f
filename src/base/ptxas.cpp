#include "base/ptxas.h"

#include <cstdio>
#include <sstream>

#include "base/check.h"
#include "base/compilers.h"
#include "base/os.h"
#include "base/os_cache.h"

namespace tuff {
namespace {

// `ptxas -v`: each kernel is named, then its stack and spills, then its registers.
std::vector<PtxasKernel> kernels_of(const std::string& said) {
  std::vector<PtxasKernel> kernels;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    constexpr const char* kNamed = "Compiling entry function '";
    if (const size_t at = line.find(kNamed); at != line.npos) {
      const size_t begin = at + std::string(kNamed).size();
      kernels.push_back({.name = line.substr(begin, line.find('\'', begin) - begin)});
    }
    if (kernels.empty()) continue;
    PtxasKernel& k = kernels.back();
    uint32_t stack = 0, stores = 0, loads = 0, registers = 0;
    if (std::sscanf(line.c_str(),
                    " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stack,
                    &stores, &loads) == 3) {
      k.stack_bytes = stack;
      k.spill_store_bytes = stores;
      k.spill_load_bytes = loads;
    }
    if (std::sscanf(line.c_str(), "ptxas info : Used %u registers", &registers) == 1)
      k.registers = registers;
  }
  return kernels;
}

}  // namespace

std::vector<PtxasKernel> run_ptxas(const std::string& ptx, const std::string& architecture) {
  const std::optional<std::string> ptxas = find_ptxas();
  if (!ptxas) fail<Unsupported>("no ptxas: TUFF_PTXAS names one, scripts/ptxas fetches it");
  const os::ScratchFolder folder;
  const std::string path = folder.path() + "/kernels.ptx";
  os::write_text(path, ptx);
  os::Process process(
      {*ptxas, "-v", "-arch=" + architecture, "-o", folder.path() + "/kernels", path});
  const os::ProcessResult& r = process.wait();
  const std::string said = r.out + r.err;
  if (r.exit_code != 0) fail<CompileError>("ptxas for {}: {}", architecture, said);
  return kernels_of(said);
}

std::vector<PtxasKernel> ask_ptxas(const std::string& ptx, const std::string& architecture) {
  if (!find_ptxas()) return {};
  try {
    return run_ptxas(ptx, architecture);
  } catch (const CompileError&) {  // a text for a later GPU
    return {};
  }
}

}  // namespace tuff
