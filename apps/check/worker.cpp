#include "check/worker.h"

#include <memory>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "check/device_run.h"
#include "check/random_case.h"
#include "check/result_json.h"
#include "check/suite.h"
#include "engine/program/program_cache.h"
#include "engine/device.h"
#include "render/renderer.h"

namespace tuff::check {
namespace {

// What runs under one name: a case of the suite or of a reproducer, or a random graph.
struct Item {
  std::string name;
  const Case* c = nullptr;  // null: a random graph
  uint64_t seed = 0;        // of the random graph
};

// The cases an order names; that of a reproducer lives in `own`.
std::vector<Item> items_of(const WorkOrder& order, std::unique_ptr<Reproducer>& own) {
  if (!order.replay.empty()) {
    own = std::make_unique<Reproducer>(read_reproducer(order.replay));
    return {{own->c.name, &own->c}};
  }
  std::vector<Item> out;
  for (const std::string& n : order.cases) {
    const auto seed = random_case_seed(n);
    const Case* c = seed ? nullptr : find_case(n);
    if (!c && !seed) fail<InvalidArgument>("there is no case '{}'", n);
    out.push_back({n, c, seed.value_or(0)});
  }
  return out;
}

std::vector<ir::UOp> kernels_of(const Item& item, const Circumstances& how) {
  if (item.c) return BoundCase(*item.c, how.device, how.seed).asts();
  return kernels_of(random_case(item.seed, how.device), how.device);
}

// Compiles the kernels of all cases at once: a C compiler costs more per call than per kernel. What
// fails here fails again when its case runs alone.
void prepare(std::span<const Item> items, const Circumstances& how) {
  std::vector<ir::UOp> asts;
  for (const Item& item : items) {
    try {
      const auto kernels = kernels_of(item, how);
      asts.insert(asts.end(), kernels.begin(), kernels.end());
    } catch (const std::exception& e) {
      log_info("{}: {}", item.name, e.what());
    }
  }
  try {
    engine::Device::get(how.device)->programs().get(asts);
  } catch (const Error& e) {
    log_info("compiling {} kernels together: {}", asts.size(), e.what());
  }
}

std::string write_item(const WorkOrder& order, const Item& item, const CaseResult& r,
                       const Arrays* outputs) {
  if (item.c) return write_reproducer(order.out, *item.c, r, order.how, outputs);
  const std::string& device = order.how.device;
  return write_random_case(order.out, random_case(item.seed, device), device, r.message);
}

CaseResult run_one(const Item& item, const WorkOrder& order) {
  const Circumstances& how = order.how;
  Arrays outputs;
  CaseResult r = item.c ? run_case(*item.c, how.device, how.against, how.seed, &outputs)
                        : run_random_case(random_case(item.seed, how.device), how.device);
  if (r.expected || order.out.empty()) return r;
  try {
    r.reproducer = write_item(order, item, r, outputs.empty() ? nullptr : &outputs);
  } catch (const Error& e) {
    r.message += fmt::format(" (no reproducer: {})", e.what());
  }
  return r;
}

// False: the device is lost.
bool run_items(std::span<const Item> items, const WorkOrder& order) {
  for (const Item& item : items) {
    print_json({{"event", "begin"}, {"case", item.name}});
    Json j = {{"event", "result"}};
    const CaseResult r = run_one(item, order);
    j.update(to_json(r));
    print_json(j);
    if (r.verdict == Verdict::Crash) return false;
  }
  return true;
}

}  // namespace

std::string to_text(const WorkOrder& o) {
  Json j = {{"device", o.how.device}, {"against", o.how.against},
            {"seed", o.how.seed},     {"command", o.how.command},
            {"out", o.out},           {"replay", o.replay},
            {"cases", o.cases},       {"prepare", o.prepare},
            {"describe", o.describe}};
  if (o.describe) j["result"] = to_json(o.result);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
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
  const std::vector<Item> items = items_of(order, own);
  if (order.describe) {
    print_json({{"reproducer", write_item(order, items.at(0), order.result, nullptr)}});
    return;
  }
  const auto device = engine::Device::get(order.how.device);
  if (order.prepare && render::renderer_of(device->target()).starts_compiler) {
    print_json({{"event", "prepare"}});
    prepare(items, order.how);
  }
  print_json({{"event", "ready"}});
  const bool whole = run_items(items, order);
  if (env_int(Env::TUFF_RANDOM_OPTS))
    print_json({{"event", "opts"},
         {"counts",
          to_json(kernel::random_opt_counts(), sched::random_parts_counts(), device->target())}});
  print_json({{"event", whole ? "done" : "lost"}});
}

}  // namespace tuff::check
