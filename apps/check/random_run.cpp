#include "check/random_run.h"

#include <algorithm>

#include "base/os.h"
#include "check/device_run.h"
#include "check/graph_check.h"

namespace tuff::check {

GraphRunner device_runner(std::string device) {
  return [device = std::move(device)](std::span<const GraphCase> cases) {
    return check_on_device(cases, device);
  };
}

GraphRunner host_runner(HostDevice device) {
  return [device = std::move(device)](std::span<const GraphCase> cases) {
    std::vector<std::string> out;
    for (const GraphCase& c : cases) {
      HostDevice d = device;
      d.seed += c.seed;
      out.push_back(check_on_host(c, d));
    }
    return out;
  };
}

namespace {

std::string run_child(const std::vector<std::string>& command, const std::string& file,
                      uint64_t timeout_ns) {
  std::vector<std::string> argv = command;
  argv.push_back(file);
  os::Process child(argv);
  if (!child.done_within(timeout_ns)) return "hang";  // ~Process kills it
  const os::ProcessResult r = child.wait();
  if (r.exit_code == 0) return {};
  if (r.exit_code > 128) return fmt::format("crash: signal {}", r.exit_code - 128);
  const std::string said = r.out.substr(0, r.out.find('\n'));
  return said.empty() ? fmt::format("exit code {}", r.exit_code) : said;
}

}  // namespace

GraphRunner child_runner(std::vector<std::string> command, std::string folder,
                         uint64_t timeout_ns) {
  return [=](std::span<const GraphCase> cases) {
    std::vector<std::string> out;
    for (const GraphCase& c : cases) {
      const std::string file = folder + "/candidate.graph";
      os::write_text(file, to_text(c));
      out.push_back(run_child(command, file, timeout_ns));
    }
    return out;
  };
}

// An error's kind is its words up to the first that names a value.
std::string failure_kind(const std::string& difference) {
  if (difference.empty()) return {};
  if (!difference.starts_with("exception")) return difference.substr(0, difference.find(' '));
  const size_t end = difference.find_first_of("0123456789(%");
  return difference.substr(0, end);
}

std::string GraphFault::text() const {
  const GraphCase& c = minimal.graph;
  return fmt::format("# random graph of seed {}: {}\n# reduced to {} nodes with {} trials{}\n{}",
                     seed, why.substr(0, why.find('\n')), node_count(c), minimal.tried,
                     minimal.finished ? "" : " (not to the end)", to_text(c));
}

GraphFault reduced_fault(const GraphCase& c, const std::string& why, const GraphRunner& run_alone,
                         const std::function<bool()>& stop) {
  const auto kind_of = [&](const GraphCase& g) {
    return failure_kind(run_alone(std::span<const GraphCase>(&g, 1)).at(0));
  };
  // What fails in a batch only is shown as it is.
  const std::string kind = kind_of(c);
  if (kind.empty()) return {c.seed, why + " (only beside other graphs)", {c, 1, false}};
  const auto is_comparison = [](const std::string& k) { return k == "sink" || k == "buffer"; };
  bool stopped = false;
  GraphFault fault{c.seed, why, reduce_graph(c, [&](const GraphCase& g) {
                     stopped = stopped || (stop && stop());
                     if (stopped) return false;
                     const std::string k = kind_of(g);
                     return k == kind || (is_comparison(k) && is_comparison(kind));
                   })};
  fault.minimal.finished = fault.minimal.finished && !stopped;
  return fault;
}

RandomResult run_random(const RandomOptions& o, const GraphRunner& run,
                        const GraphRunner& run_alone) {
  RandomResult result;
  for (uint64_t done = 0; done < o.count && result.faults.size() < o.max_faults;) {
    std::vector<GraphCase> cases;
    for (; cases.size() < o.batch && done < o.count; done++)
      cases.push_back(random_graph(o.seed + done, o.graphs));
    const std::vector<std::string> differences = run(cases);
    for (size_t i = 0; i < cases.size(); i++) {
      result.graphs++;
      result.sinks += cases[i].sinks.size();
      result.nodes += uint64_t(node_count(cases[i]));
      if (!differences[i].empty() && result.faults.size() < o.max_faults)
        result.faults.push_back(reduced_fault(cases[i], differences[i], run_alone));
    }
    if (o.progress) o.progress(done);
  }
  return result;
}

}  // namespace tuff::check
