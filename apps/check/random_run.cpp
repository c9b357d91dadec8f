#include "check/random_run.h"

#include "base/os.h"

namespace tuff::check {

GraphRunner child_runner(std::vector<std::string> command, std::string folder,
                         uint64_t timeout_ns) {
  const std::string file = folder + "/candidate.graph";
  command.push_back(file);
  return [=](const GraphCase& c) -> std::string {
    os::write_text(file, to_text(c));
    os::Process child(command);
    if (!child.done_within(timeout_ns)) return "hang";  // ~Process kills it
    const os::ProcessResult r = child.wait();
    if (r.exit_code == 0) return {};
    if (r.exit_code > 128) return fmt::format("crash: signal {}", r.exit_code - 128);
    const std::string said = r.out.substr(0, r.out.find('\n'));
    return said.empty() ? fmt::format("exit code {}", r.exit_code) : said;
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
  const auto kind_of = [&](const GraphCase& g) { return failure_kind(run_alone(g)); };
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

}  // namespace tuff::check
