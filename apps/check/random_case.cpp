#include "check/random_case.h"

#include <algorithm>
#include <charconv>

#include "base/os.h"
#include "check/device_run.h"
#include "check/expected.h"
#include "check/random_graph.h"
#include "engine/device.h"

namespace tuff::check {
namespace {

constexpr std::string_view kPrefix = "random/";

}  // namespace

std::string random_case_name(uint64_t seed) { return fmt::format("{}{}", kPrefix, seed); }

std::optional<uint64_t> random_case_seed(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t seed = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, seed);
  if (error != std::errc() || rest != end) return std::nullopt;
  return seed;
}

GraphCase random_case(uint64_t seed, const std::string& device) {
  GraphOptions options;
  options.device = device;
  options.dtypes = supported_dtypes(engine::Device::get(device)->target());
  return random_graph(seed, options);
}

CaseResult run_random_case(const GraphCase& c, const std::string& device) {
  CaseResult r;
  r.name = random_case_name(c.seed);
  r.op = kRandomOp;
  const uint64_t begin = os::monotonic_ns();
  try {
    r.message = check_on_device(std::span(&c, 1), device).at(0);
    r.verdict = r.message.empty() ? Verdict::Pass : Verdict::Fail;
  } catch (const DeviceLost& e) {
    r.verdict = Verdict::Crash;
    r.message = e.what();
  }
  r.time_ms = double(os::monotonic_ns() - begin) / 1e6;
  r.expected = r.verdict == Verdict::Pass;
  return r;
}

std::string write_random_case(const std::string& out, const GraphCase& c, const std::string& device,
                              const std::string& why) {
  std::string name = device;
  std::replace(name.begin(), name.end(), ':', '_');
  os::make_directories(out);
  const std::string file = fmt::format("{}/{}-random-{}.graph", out, name, c.seed);
  os::write_text(file, fmt::format("# {}\n{}", why.substr(0, why.find('\n')), to_text(c)));
  return file;
}

}  // namespace tuff::check
