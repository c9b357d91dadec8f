#include "cli/check_graphs.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "check/device_run.h"
#include "check/random_run.h"
#include "cli/command.h"
#include "base/json.h"

namespace tuff::cli {
namespace {

constexpr size_t kMostReduced = 5;
constexpr double kReductionTimeouts = 10;

check::GraphFault reduced(const FailedGraph& f, double timeout_s, const std::string& folder) {
  const uint64_t timeout_ns = uint64_t(timeout_s * 1e9);
  const uint64_t end = os::monotonic_ns() + uint64_t(kReductionTimeouts * double(timeout_ns));
  const check::GraphRunner alone = check::child_runner(
      {os::own_program(), "check", "--device", f.device, "--graph"}, folder, timeout_ns);
  return check::reduced_fault(check::case_from_text(os::read_text(f.result.reproducer)),
                              f.result.message, alone,
                              [&] { return os::interrupted() || os::monotonic_ns() > end; });
}

void show(const FailedGraph& f, const check::GraphFault& fault, bool keep, bool json) {
  std::string file;
  if (keep) {
    file = std::filesystem::path(f.result.reproducer).replace_extension("minimal.graph").string();
    os::write_text(file, fault.text());
  }
  if (json) {
    print_json({{"case", f.result.name},
                {"device", f.device},
                {"minimal_graph", fault.text()},
                {"reproducer", file}});
    return;
  }
  fmt::print("\n{}", fault.text());
  if (keep) fmt::print("# again: tuff check --device {} --graph {}\n", f.device, file);
}

}  // namespace

void show_minimal(const std::vector<FailedGraph>& failed, double timeout_s, bool keep, bool json) {
  const os::ScratchFolder workspace;
  size_t done = 0;
  for (const FailedGraph& f : failed) {
    if (os::interrupted()) return;
    if (done++ == kMostReduced) {
      fmt::print(stderr, "check: {} more failing graphs are not reduced\n",
                 failed.size() - kMostReduced);
      return;
    }
    if (f.result.reproducer.empty()) continue;
    fmt::print(stderr, "check: reducing {} on {} ...\n", f.result.name, f.device);
    show(f, reduced(f, timeout_s, workspace.path()), keep, json);
  }
}

namespace {

check::GraphCase case_in(const std::string& file) {
  const std::string text = os::read_text(file);
  try {
    return check::case_from_text(text);
  } catch (const InvalidArgument& e) {
    fail<InvalidArgument>("{}: {}", file, e.what());
  }
}

}  // namespace

int run_graph_file(const std::string& file, const std::vector<std::string>& devices) {
  const check::GraphCase c = case_in(file);
  int code = kExitOk;
  for (const std::string& device : devices) {
    const std::string d = check::check_on_device(std::span(&c, 1), device).at(0);
    if (d.empty()) continue;
    fmt::print("{}\n", d);
    code = kExitFailed;
  }
  return code;
}

}  // namespace tuff::cli
