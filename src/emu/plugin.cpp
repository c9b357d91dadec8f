// The library's one symbol.
#include "emu/amd/mock.h"
#include "emu/api.h"
#include "emu/run/run_kernel.h"

namespace tuff::emu {
namespace {

std::unique_ptr<os::Kernel> make_amd(const std::string& text, emu_api::ReportFinding report) {
  amd::MockOptions options = amd::parse_options(text);
  options.report = [report = std::move(report)](const amd::Finding& f) {
    report({amd::name(f.kind), f.gpu, f.queue, f.address, to_text(f)});
  };
  return amd::make_mock(options);
}

constexpr emu_api::Api kApi{emu_api::kApiBuild, make_amd, run_kernel};

}  // namespace
}  // namespace tuff::emu

extern "C" [[gnu::visibility("default")]] const tuff::emu_api::Api* tuff_emulator_api() {
  return &tuff::emu::kApi;
}
