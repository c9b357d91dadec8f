#include "devices/emulator.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/shipped.h"

namespace tuff::devices {
namespace {

constexpr const char* kFile = "libtuff_emulator.so";

std::vector<std::string> places() {
  const std::string named = env_text(Env::TUFF_EMULATOR);
  if (!named.empty()) return {named};
  std::vector<std::string> out = shipped_places(kFile);
  out.push_back(kFile);
  return out;
}

const emu_api::Api& open() {
  const std::vector<std::string> names = places();
  std::vector<std::string> there;  // what the loader says of the others is that they are not
  std::ranges::copy_if(names, std::back_inserter(there),
                       [](const std::string& n) { return n == kFile || os::exists(n); });
  std::string why;
  const auto library = os::Library::open(there, &why);
  if (const std::string named = env_text(Env::TUFF_EMULATOR); !library && !named.empty())
    fail<Unsupported>("TUFF_EMULATOR='{}' cannot be opened: {}", named,
                      why.empty() ? "there is no such file" : why);
  if (!library)
    fail<Unsupported>(
        "{}, which emulates GPUs for AMD_IFACE=MOCK and `tuff emu`, is at none of {} ({}): build "
        "the target tuff_emulator, or name the file in TUFF_EMULATOR",
        kFile, fmt::join(names, ", "), why.empty() ? "no such file" : why);
  using Function = const emu_api::Api* (*)();
  const auto function = reinterpret_cast<Function>(library->symbol(emu_api::kApiSymbol));
  const emu_api::Api* api = function ? function() : nullptr;
  if (!api || std::strcmp(api->build, emu_api::kApiBuild) != 0)
    fail<Unsupported>("{} is of another build of tuff ({}, wanted {}): build both together", kFile,
                      api ? api->build : "no emulator", emu_api::kApiBuild);
  return *api;
}

emu_api::ProfileOptions& profile() {
  static emu_api::ProfileOptions options;
  return options;
}

}  // namespace

void profile_emulated(emu_api::ProfileOptions options) { profile() = std::move(options); }
const emu_api::ProfileOptions& emulated_profile() { return profile(); }

void throw_failure(const emu_api::Failure& failure) {
  const std::string& kind = failure.kind;
  if (kind.empty()) return;
  if (kind == "InvalidArgument") throw InvalidArgument(failure.text);
  if (kind == "CompileError") throw CompileError(failure.text);
  if (kind == "Unsupported") throw Unsupported(failure.text);
  if (kind == "OutOfMemory") throw OutOfMemory(failure.text);
  if (kind == "IoError") throw IoError(failure.text);
  throw Error(failure.text);
}

const emu_api::Api& emulator() {
  static const emu_api::Api& api = open();
  return api;
}

}  // namespace tuff::devices
