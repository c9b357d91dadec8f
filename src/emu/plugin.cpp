// The library's one symbol, through which no exception passes.
#include <tuff/error.h>

#include "emu/amd/mock.h"
#include "emu/api.h"
#include "emu/nv/assembler.h"
#include "emu/nv/mock.h"
#include "emu/profile/chip.h"
#include "emu/ptx/launch.h"
#include "emu/run/launch_file.h"
#include "emu/run/run_kernel.h"

namespace tuff::emu {
namespace {

template <class Call>
auto catching(emu_api::Failure& failure, Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const BadLaunchFile& e) {
    failure = {"usage", e.what()};
  } catch (const Error& e) {
    failure = {e.kind(), e.what()};
  } catch (const std::exception& e) {
    failure = {"Error", e.what()};
  }
  return {};
}

std::function<void(const Finding&)> reports_to(emu_api::ReportFinding report) {
  return [report = std::move(report)](const Finding& f) {
    report({name(f.kind), f.gpu, f.queue, f.address, to_text(f)});
  };
}

std::unique_ptr<os::Kernel> make_amd(const std::string& text, emu_api::ReportFinding report,
                                     const emu_api::ProfileOptions& profile,
                                     emu_api::Failure& failure) {
  return catching(failure, [&]() -> std::unique_ptr<os::Kernel> {
    amd::MockOptions options = amd::parse_options(text);
    options.report = reports_to(std::move(report));
    if (profile.report) profile::chip(profile.chip, profile::Vendor::Amd);
    options.profile = profile;
    return amd::make_mock(options);
  });
}

emu_api::NvMachine make_nv(const std::string& text, emu_api::ReportFinding report,
                           const emu_api::ProfileOptions& profile, emu_api::Failure& failure) {
  return catching(failure, [&]() -> emu_api::NvMachine {
    nv::MockOptions options = nv::parse_options(text);
    options.report = reports_to(std::move(report));
    if (profile.report) profile::chip(profile.chip, profile::Vendor::Nvidia);
    options.profile = profile;
    return {nv::make_mock(options), options.pci ? nv::kPciSlot : ""};
  });
}

std::string chip_target(const std::string& name, emu_api::Failure& failure) {
  return catching(failure, [&] { return std::string(profile::chip(name).core.target); });
}

std::vector<uint8_t> assemble_ptx(const std::string& text, uint32_t sm,
                                  emu_api::Failure& failure) {
  return catching(failure, [&] { return nv::assemble(text, sm); });
}

bool run(const emu_api::RunRequest& request, emu_api::Failure& failure) {
  return catching(failure, [&] { return run_kernel(request); });
}

emu_api::LaunchResult launch(const emu_api::LaunchRequest& request, emu_api::Failure& failure) {
  return catching(failure, [&] { return launch_kernel(request); });
}

std::unique_ptr<emu_api::PtxModule> load_ptx(const std::string& text, emu_api::Failure& failure) {
  return catching(failure, [&] { return ptx::load(text); });
}

emu_api::PtxLaunchResult launch_ptx(const emu_api::PtxLaunchRequest& request,
                                    emu_api::Failure& failure) {
  return catching(failure, [&] { return ptx::launch(request); });
}

constexpr emu_api::Api kApi{emu_api::kApiBuild, make_amd, make_nv, chip_target,
                           assemble_ptx, run, launch, load_ptx, launch_ptx};

}  // namespace
}  // namespace tuff::emu

extern "C" [[gnu::visibility("default")]] const tuff::emu_api::Api* tuff_emulator_api() {
  return &tuff::emu::kApi;
}
