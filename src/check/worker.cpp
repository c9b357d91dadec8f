#include "check/worker.h"

#include <cstdio>
#include <memory>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "check/result_json.h"
#include "check/suite.h"
#include "engine/cache/program_cache.h"
#include "engine/device.h"

namespace tuff::check {
namespace {

void say(const Json& j) {
  fmt::print(stdout, "{}\n", to_line(j));
  std::fflush(stdout);
}

// The cases an order names; those of a reproducer live in `own`.
std::vector<const Case*> cases_of(const WorkOrder& order, std::unique_ptr<Reproducer>& own) {
  if (!order.replay.empty()) {
    own = std::make_unique<Reproducer>(read_reproducer(order.replay));
    return {&own->c};
  }
  std::vector<const Case*> out;
  for (const std::string& n : order.cases) {
    const Case* c = find_case(n);
    if (!c) fail<InvalidArgument>("there is no case '{}'", n);
    out.push_back(c);
  }
  return out;
}

// Compiles the kernels of all cases at once: a C compiler costs more per call than per kernel. What
// fails here fails again when its case runs alone.
void prepare(std::span<const Case* const> cases, const Circumstances& how) {
  std::vector<graph::UOp> asts;
  for (const Case* c : cases) {
    try {
      const auto kernels = BoundCase(*c, how.device, how.seed).asts();
      asts.insert(asts.end(), kernels.begin(), kernels.end());
    } catch (const std::exception& e) {
      log_info("{}: {}", c->name, e.what());
    }
  }
  try {
    engine::Device::get(how.device)->programs().get(asts);
  } catch (const Error& e) {
    log_info("compiling {} kernels together: {}", asts.size(), e.what());
  }
}

CaseResult run_one(const Case& c, const WorkOrder& order) {
  Arrays outputs;
  CaseResult r = run_case(c, order.how.device, {order.how.against}, order.how.seed, &outputs);
  if (r.expected || order.out.empty()) return r;
  try {
    r.reproducer =
        write_reproducer(order.out, c, r, order.how, outputs.empty() ? nullptr : &outputs);
  } catch (const Error& e) {
    r.message += fmt::format(" (no reproducer: {})", e.what());
  }
  return r;
}

}  // namespace

std::string to_text(const WorkOrder& o) {
  Json j = {{"device", o.how.device}, {"against", o.how.against},
            {"seed", o.how.seed},     {"command", o.how.command},
            {"out", o.out},           {"replay", o.replay},
            {"cases", o.cases},       {"prepare", o.prepare},
            {"describe", o.describe}};
  if (o.describe) j["result"] = to_json(o.result);
  return to_line(j) + "\n";
}

WorkOrder work_order_from(const std::string& text) {
  try {
    const Json j = Json::parse(text);
    WorkOrder o;
    o.how = {j.at("device").get<std::string>(), j.at("against").get<std::string>(),
             j.at("seed").get<uint64_t>(), j.at("command").get<std::string>()};
    o.out = j.at("out").get<std::string>();
    o.replay = j.at("replay").get<std::string>();
    o.cases = j.at("cases").get<std::vector<std::string>>();
    o.prepare = j.at("prepare").get<bool>();
    o.describe = j.at("describe").get<bool>();
    if (o.describe) o.result = result_from_json(j.at("result"));
    return o;
  } catch (const nlohmann::json::exception& e) {
    fail<InvalidArgument>("the order of a worker is malformed: {}", e.what());
  }
}

void run_worker(const WorkOrder& order) {
  // Functions that create tensors do so on the default device.
  const EnvOverride here(Env::TUFF_DEVICE, order.how.device);
  std::unique_ptr<Reproducer> own;
  const std::vector<const Case*> cases = cases_of(order, own);
  if (order.describe) {
    say({{"reproducer",
          write_reproducer(order.out, *cases.at(0), order.result, order.how, nullptr)}});
    return;
  }
  const auto device = engine::Device::get(order.how.device);
  if (order.prepare && device->target().renderer == "c") {
    say({{"event", "prepare"}});
    prepare(cases, order.how);
  }
  say({{"event", "ready"}});
  for (const Case* c : cases) {
    say({{"event", "begin"}, {"case", c->name}});
    Json j = {{"event", "result"}};
    const CaseResult r = run_one(*c, order);
    j.update(to_json(r));
    say(j);
    if (r.verdict == Verdict::Crash) {
      say({{"event", "lost"}});
      return;
    }
  }
  say({{"event", "done"}});
}

}  // namespace tuff::check
