// What libtuff_emulator.so offers: the machines of AMD_IFACE=MOCK, and kernels executed on their
// own. The library is opened by devices/emulator.h alone, so that no program carries an emulator it
// does not use. Both sides are built together: C++ types cross, and `build` tells a library of
// another build. A namespace of its own, so that no symbol of the emulator is in a program
// (tests/tools/symbols_test.py).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/os_kernel.h"

namespace tuff::emu_api {

// What a machine found wrong with a program or a command stream.
struct MachineFinding {
  std::string kind;  // "page_fault"
  uint32_t gpu = 0, queue = 0;
  uint64_t address = 0;  // 0: none
  std::string text;      // a sentence with all of it
};
using ReportFinding = std::function<void(const MachineFinding&)>;  // on any thread

// An exception would meet another copy of the unwinder, where a program brings its own: calls
// return their failures.
struct Failure {
  std::string kind;  // of the Error, "" if there was none; "usage": the file of arguments is wrong
  std::string text;
};

// `tuff emu run`; the fields are its options.
struct RunRequest {
  std::string object, kernel, args, out;
  uint64_t seed = 0;  // 0: the file's
  bool json = false, counts = false;
};

struct Api {
  const char* build;  // kApiBuild
  // The machine that TUFF_MOCK's text describes. InvalidArgument naming what is known.
  std::unique_ptr<os::Kernel> (*make_amd)(const std::string& options, ReportFinding report,
                                          Failure& failure);
  // Prints what came out; false if the kernel did not finish, or with findings.
  bool (*run_kernel)(const RunRequest& request, Failure& failure);
};

inline constexpr char kApiBuild[] = "2 " __VERSION__;
inline constexpr char kApiSymbol[] = "tuff_emulator_api";  // extern "C" const Api* ()

}  // namespace tuff::emu_api
