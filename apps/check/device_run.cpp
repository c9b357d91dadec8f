#include "check/device_run.h"

#include <unordered_map>

#include "engine/program/compile_options.h"
#include "engine/realize/linear.h"

namespace tuff::check {

using ir::UOp;

namespace {

std::vector<std::byte> contents(engine::Buffer& b) {
  std::vector<std::byte> out(b.size_bytes());
  if (!out.empty()) b.copyout(out.data());
  return out;
}

GraphCase uploaded(const GraphCase& c, const std::shared_ptr<engine::Device>& device) {
  return placed(c, device->name(), [&](const ir::Storage& s) -> Ref<ir::Storage> {
    auto buffer = engine::Buffer::make(device, s.dtype, s.count);
    for (const GraphInput& in : c.inputs) {
      if (in.storage->id == s.id && !in.bytes.empty()) buffer->copyin(in.bytes.data());
    }
    return buffer;
  });
}

void check_part(std::span<const GraphCase> cases, const std::string& device,
                std::span<std::string> out) {
  try {
    const std::vector<RunOutput> got = run_on_device(cases, device);
    for (size_t i = 0; i < cases.size(); i++) out[i] = difference(cases[i], got[i]);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {
    if (cases.size() == 1) {
      out[0] = fmt::format("exception: {}", e.what());
      return;
    }
    const size_t half = cases.size() / 2;
    check_part(cases.first(half), device, out.first(half));
    check_part(cases.subspan(half), device, out.subspan(half));
  }
}

}  // namespace

std::vector<RunOutput> run_on_device(std::span<const GraphCase> cases, const std::string& name) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(name);
  std::vector<GraphCase> there;
  std::vector<UOp> sinks;
  ir::VariableValues variables;
  for (const GraphCase& c : cases) {
    there.push_back(uploaded(c, device));
    sinks.insert(sinks.end(), there.back().sinks.begin(), there.back().sinks.end());
    variables.insert(c.variables.begin(), c.variables.end());
  }
  const std::vector<Ref<engine::Buffer>> buffers = engine::realize(sinks, variables);
  std::vector<RunOutput> out;
  size_t next = 0;
  for (size_t i = 0; i < cases.size(); i++) {
    RunOutput& o = out.emplace_back();
    for (size_t k = 0; k < cases[i].sinks.size(); k++)
      o.sinks.push_back(contents(*buffers[next++]));
    for (size_t k = 0; k < cases[i].inputs.size(); k++) {
      auto& b = dynamic_cast<engine::Buffer&>(*there[i].inputs[k].storage);
      o.storages[cases[i].inputs[k].storage->id] = contents(b);
    }
  }
  return out;
}

std::vector<UOp> kernels_of(const GraphCase& c, const std::string& name) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(name);
  const GraphCase there = uploaded(c, device);
  const auto target_of = [](const std::string& d) -> const Target& {
    return engine::Device::get(d)->target();
  };
  std::vector<UOp> out;
  for (const sched::Call& call : sched::schedule(there.sinks, target_of, {}, engine::schedule_steps()).schedule->calls) {
    if (call.kind == sched::CallKind::Kernel && call.device == device->name())
      out.push_back(call.ast);
  }
  return out;
}

std::vector<std::string> check_on_device(std::span<const GraphCase> cases,
                                         const std::string& device) {
  std::vector<std::string> out(cases.size());
  if (!cases.empty()) check_part(cases, device, out);
  return out;
}

}  // namespace tuff::check
