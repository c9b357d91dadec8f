// `tuff check`: the conformance suite on every device, in child processes.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "check/pool.h"
#include "check/random_case.h"
#include "check/suite.h"
#include "cli/check_graphs.h"
#include "cli/check_report.h"
#include "cli/command.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

constexpr const char* kInterpreter = "INTERPRETER";

struct CheckOptions {
  std::string devices, against = kInterpreter, filter = "*", out, replay, graph;
  uint64_t seed = 0, random = 0;
  uint32_t jobs = 0;
  double timeout_s = 60;
  bool list = false, json = false, worker = false;
};

class NoSuchDevice : public Error {
 public:
  using Error::Error;
};

std::string upper(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  return s;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::stringstream list(text);
  for (std::string part; std::getline(list, part, ',');) {
    if (!part.empty()) out.push_back(part);
  }
  return out;
}

std::string kind_of(const std::string& name) { return upper(name.substr(0, name.find(':'))); }

hcq::DeviceInfo info_named(const std::string& asked,
                           const std::vector<devices::Candidate>& candidates) {
  std::string wanted = asked;
  if (asked.find('=') != std::string::npos) {  // a selector: only opening it gives its name
    try {
      wanted = engine::canonical_device(asked);
    } catch (const Error& e) {
      throw NoSuchDevice(e.what());
    }
  }
  std::string names;
  for (const devices::Candidate& c : candidates) {
    const bool bare = wanted.find(':') == std::string::npos;
    const bool same = upper(wanted) == upper(c.name) || (bare && kind_of(c.name) == upper(wanted));
    if (same && c.usable) return c.info;
    if (same) throw NoSuchDevice(fmt::format("{} cannot be used: {}", c.name, c.reason));
    if (c.usable) names += (names.empty() ? "" : ", ") + c.name;
  }
  throw NoSuchDevice(fmt::format("there is no device \"{}\"; there are {}", asked, names));
}

// Those that were asked for, else every device found that could be the default.
std::vector<hcq::DeviceInfo> chosen_devices(const std::string& asked) {
  const std::vector<devices::Candidate> candidates = engine::list_devices();
  std::vector<hcq::DeviceInfo> out;
  for (const std::string& name : split(asked)) out.push_back(info_named(name, candidates));
  if (!out.empty()) return out;
  std::string reasons;
  for (const devices::Candidate& c : candidates) {
    if (c.usable && c.rank > 0) out.push_back(c.info);
    if (!c.usable) reasons += fmt::format("; {}: {}", c.name, c.reason);
  }
  if (out.empty()) throw NoSuchDevice("no device to check" + reasons);
  return out;
}

std::vector<std::string> names_of(const std::vector<const check::Case*>& cases) {
  std::vector<std::string> out;
  for (const check::Case* c : cases) out.push_back(c->name);
  return out;
}

std::string command_line(const CheckOptions& o, const std::string& device) {
  const int64_t opts = env_int(Env::TUFF_RANDOM_OPTS);
  std::string text = opts ? fmt::format("TUFF_RANDOM_OPTS={} ", opts) : std::string();
  text += fmt::format("tuff check --device {} --filter '{}' --seed {}", device, o.filter, o.seed);
  if (upper(o.against) != kInterpreter) text += " --against " + o.against;
  return text;
}

check::WorkOrder task_of(const CheckOptions& o, const hcq::DeviceInfo& device,
                        const std::string& against, std::vector<std::string> cases) {
  return {.how = {device.name, against, o.seed, command_line(o, device.name)},
          .out = o.out,
          .cases = std::move(cases)};
}

// `failed`, if there is one, receives what was not as expected.
int run_tasks(const CheckOptions& o, const std::vector<check::WorkOrder>& tasks,
              const std::vector<hcq::DeviceInfo>& devices,
              std::vector<FailedGraph>* failed = nullptr) {
  size_t total = 0;
  for (const check::WorkOrder& t : tasks) total += t.cases.size();
  check::PoolOptions pool;
  pool.worker = {os::own_program(), "check", "--worker"};
  pool.jobs = o.jobs ? o.jobs : os::core_count();
  pool.timeout_s = o.timeout_s;
  os::catch_interrupts();
  CheckReport report(devices, total, o.json);
  const auto on_result = [&](size_t task, const check::CaseResult& r) {
    report.add(task, r);
    if (failed && !r.expected) failed->push_back({devices[task].name, r});
  };
  check::run_pool(tasks, pool, on_result,
                  [&](size_t task, const Json& counts) { report.add_opts(task, counts); });
  report.finish();
  if (os::interrupted()) {
    fmt::print(stderr, "tuff: interrupted after {} of {} cases\n", report.done(), total);
    return kExitInterrupted;
  }
  return report.all_expected() && report.done() == total ? kExitOk : kExitFailed;
}

int run_suite(const CheckOptions& o) {
  const std::vector<std::string> cases = names_of(check::matching(o.filter));
  if (cases.empty()) throw UsageError(fmt::format("no case matches '{}'", o.filter));
  if (o.list) {
    for (const std::string& name : cases) fmt::print("{}\n", name);
    return kExitOk;
  }
  const std::vector<hcq::DeviceInfo> devices = chosen_devices(o.devices);
  std::string against;
  if (upper(o.against) != kInterpreter)
    against = info_named(o.against, engine::list_devices()).name;
  std::vector<check::WorkOrder> tasks;
  for (const hcq::DeviceInfo& d : devices) tasks.push_back(task_of(o, d, against, cases));
  return run_tasks(o, tasks, devices);
}

int run_random(const CheckOptions& o) {
  const std::vector<hcq::DeviceInfo> devices = chosen_devices(o.devices);
  std::vector<std::string> cases;
  for (uint64_t i = 0; i < o.random; i++) cases.push_back(check::random_case_name(o.seed + i));
  const os::ScratchFolder workspace;  // of the graphs that are reduced, if they are not to be kept
  std::vector<check::WorkOrder> tasks;
  for (const hcq::DeviceInfo& d : devices) {
    check::WorkOrder t = task_of(o, d, {}, cases);
    if (t.out.empty()) t.out = workspace.path();
    tasks.push_back(std::move(t));
  }
  std::vector<FailedGraph> failed;
  const int code = run_tasks(o, tasks, devices, &failed);
  show_minimal(failed, o.timeout_s, !o.out.empty(), o.json);
  return code;
}

int run_graph(const CheckOptions& o) {
  std::vector<std::string> names;
  for (const hcq::DeviceInfo& d : chosen_devices(o.devices)) names.push_back(d.name);
  return run_graph_file(o.graph, names);
}

int run_replay(const CheckOptions& o) {
  const check::Reproducer r = check::read_reproducer(o.replay);
  const std::string device = o.devices.empty() ? r.how.device : o.devices;
  const std::vector<hcq::DeviceInfo> devices = {info_named(device, engine::list_devices())};
  check::WorkOrder t = task_of(o, devices[0], r.how.against, {r.c.name});
  t.how.seed = r.how.seed;
  t.how.command = r.how.command;
  t.replay = o.replay;
  t.out.clear();
  return run_tasks(o, {t}, devices);
}

int run_as_worker() {
  os::forbid_core_files();
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  check::run_worker(check::work_order_from(text));
  return kExitOk;
}

int run_check(const CheckOptions& o) {
  try {
    if (o.worker) return run_as_worker();
    if (!o.graph.empty()) return run_graph(o);
    if (!o.replay.empty()) return run_replay(o);
    return o.random ? run_random(o) : run_suite(o);
  } catch (const NoSuchDevice& e) {
    print_error(e.what());
    return kExitNoDevice;
  }
}

}  // namespace

void add_check_command(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Runs the conformance suite: every op and function on every device against the reference "
      "interpreter. Exit code 0: all as expected, 1: not, 2: usage, 3: no such device");
  auto o = std::make_shared<CheckOptions>();
  command
      ->add_option("--device", o->devices,
                   "Devices, comma-separated; default: all but NULL and SHUFFLE")
      ->type_name("D,...");
  CLI::Option* against =
      command->add_option("--against", o->against, "What to compare with: INTERPRETER or a device")
          ->type_name("D");
  CLI::Option* filter =
      command
          ->add_option("--filter", o->filter,
                       "Cases to run, as op/dtype/shape with * and ?; several comma-separated")
          ->type_name("GLOB");
  CLI::Option* list =
      command->add_flag("--list", o->list, "Prints the names of the cases and runs nothing");
  command->add_option("--seed", o->seed,
                      "Seed of the operands, or of the first random graph (default 0)");
  command->add_option("--jobs", o->jobs, "Child processes at a time; default: one per core")
      ->check(CLI::Range(1, 1024));
  command->add_option("--timeout", o->timeout_s, "Seconds after which a case hangs (default 60)")
      ->check(between(0.001, 1e6));
  command->add_option("--out", o->out, "Folder for the reproducers of failing cases")
      ->type_name("DIR");
  command->add_flag("--json", o->json, "One JSON object per case on standard output");
  CLI::Option* replay =
      command->add_option("--replay", o->replay, "Runs the case of a reproducer's folder again")
          ->type_name("FOLDER");
  CLI::Option* random =
      command
          ->add_option("--random", o->random,
                       "Runs N random graphs instead; one that fails is reduced to a minimal graph")
          ->type_name("N")
          ->check(CLI::Range(uint64_t(1), uint64_t(1) << 32));
  CLI::Option* graph =
      command->add_option("--graph", o->graph, "Runs the graph of a file that --random wrote")
          ->type_name("FILE");
  for (CLI::Option* one : {replay, random, graph}) {
    for (CLI::Option* other : {replay, random, graph, against, filter, list}) {
      if (one != other && (one == random || one == graph || other != against)) one->excludes(other);
    }
  }
  command->add_flag("--worker", o->worker)->group("");  // what a run starts; see check/worker.h
  command->footer(
      "Examples:\n"
      "  tuff check --device CPU,VULKAN --filter 'matmul/*'\n"
      "  tuff check --random 200 --seed 7");
  command->callback([o, &chosen] { chosen = [o] { return run_check(*o); }; });
}

}  // namespace tuff::cli
