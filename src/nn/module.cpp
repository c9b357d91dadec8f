// What follows from a module's members, and values that are put into states.
#include <tuff/module.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/impl.h"
#include "tensor/shards.h"

namespace tuff::nn {
namespace {

using ByName = std::unordered_map<std::string, const NamedTensor*>;

ByName by_name(const StateDict& state) {
  ByName out;
  for (const NamedTensor& t : state) out.emplace(t.name, &t);
  return out;
}

// PyTorch's BatchNorm counts its batches, for a momentum that this one does not have.
bool counts_batches(const std::string& name, const ByName& into) {
  constexpr std::string_view kCount = "num_batches_tracked";
  if (!name.ends_with(kCount)) return false;
  return into.contains(name.substr(0, name.size() - kCount.size()) + "running_mean");
}

LoadReport compared(const StateDict& into, const StateDict& from) {
  const ByName places = by_name(into), values = by_name(from);
  LoadReport report;
  for (const NamedTensor& t : from) {
    if (!places.contains(t.name) && !counts_batches(t.name, places))
      report.unexpected_keys.push_back(t.name);
  }
  for (const NamedTensor& t : into) {
    const auto value = values.find(t.name);
    if (value == values.end())
      report.missing_keys.push_back(t.name);
    else if (const Tensor& v = value->second->tensor; v.sizes() != t.tensor.sizes())
      fail<ShapeError>("load_state_dict: '{}' is {}, {} was given", t.name,
                       detail::text(t.tensor.sizes()), detail::text(v.sizes()));
  }
  return report;
}

std::string listed(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); i++)
    out += fmt::format("{}'{}'", i ? ", " : what, names[i]);
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

}  // namespace

Parameters parameters_of(const StateDict& state) {
  Parameters out;
  for (const NamedTensor& t : state) {
    if (t.trained) out.push_back(t.tensor);
  }
  return out;
}

void append_state(StateDict& to, std::string_view prefix, const StateDict& state) {
  for (const NamedTensor& t : state)
    to.push_back({fmt::format("{}.{}", prefix, t.name), t.tensor, t.trained});
}

LoadReport load_state_dict(const StateDict& into, const StateDict& from, bool strict) {
  LoadReport report = compared(into, from);
  if (strict && !report.unexpected_keys.empty())
    fail<InvalidArgument>("load_state_dict: {}", listed("no tensor ", report.unexpected_keys));
  if (strict && !report.missing_keys.empty())
    fail<InvalidArgument>("load_state_dict: {} {} missing", listed("", report.missing_keys),
                          report.missing_keys.size() == 1 ? "is" : "are");
  // All of a file or nothing: what cannot be read is found before anything is assigned.
  const ByName values = by_name(from);
  std::vector<Tensor> read, all;
  for (const NamedTensor& t : into) {
    if (const auto v = values.find(t.name); v != values.end()) read.push_back(v->second->tensor);
  }
  detail::wait_for(read);
  for (const NamedTensor& t : into) {
    const auto v = values.find(t.name);
    if (v == values.end()) continue;
    Tensor target = t.tensor;  // shares
    detail::store(target, detail::on_devices_of(v->second->tensor.detach(), target).cast(target.dtype()));
    all.push_back(target);
  }
  Tensor::realize(all);
  return report;
}

void convert_(const std::vector<Tensor>& tensors, DType dtype, const std::string& device) {
  if (dtype != DType::Void && !is_float(dtype))
    fail<InvalidArgument>("to: {} is no type of floats, which parameters are of", name(dtype));
  if (engine::Capture::current())
    fail<InvalidArgument>("to: a module inside a captured function cannot move");
  for (const Tensor& t : tensors) {
    const bool floats = dtype != DType::Void && is_float(t.dtype());
    detail::convert(t, floats ? dtype : t.dtype(), device.empty() ? t.device() : device);
  }
}

Members Module::all() const {
  Members m;
  members(m);
  return m;
}

Module::NamedModules Module::named_children() const { return all().modules_; }

Module::NamedModules Module::named_modules() const {
  NamedModules out{{"", const_cast<Module*>(this)}};
  for (const auto& [name, child] : named_children()) {
    for (const auto& [inner, m] : child->named_modules())
      out.emplace_back(inner.empty() ? name : name + "." + inner, m);
  }
  return out;
}

StateDict Module::state_dict() const {
  StateDict out;
  const Members m = all();
  for (const Members::Entry& t : m.tensors_) {
    if (t.tensor->defined() && t.persistent) out.push_back({t.name, *t.tensor, t.trained});
  }
  for (const auto& [name, child] : m.modules_) append_state(out, name, child->state_dict());
  return out;
}

StateDict Module::tensors() const {
  StateDict out;
  for (const Members::Entry& t : all().tensors_) out.push_back({t.name, *t.tensor, t.trained});
  return out;
}

void Module::set_tensor(std::string_view name, const Tensor& t) {
  for (const Members::Entry& own : all().tensors_) {
    if (own.name != name) continue;
    *own.tensor = t;
    return;
  }
  fail<InvalidArgument>("a module has no tensor '{}'", name);
}

StateDict Module::named_parameters() const {
  StateDict out;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [prefix, m] : named_modules()) {
    for (const NamedTensor& t : m->tensors()) {
      if (!t.trained || !t.tensor.defined() || !seen.insert(t.tensor.impl()).second) continue;
      out.push_back({prefix.empty() ? t.name : prefix + "." + t.name, t.tensor, true});
    }
  }
  return out;
}

StateDict Module::named_buffers() const {
  StateDict out;
  for (const auto& [prefix, m] : named_modules()) {
    for (const NamedTensor& t : m->tensors()) {
      if (t.trained || !t.tensor.defined()) continue;
      out.push_back({prefix.empty() ? t.name : prefix + "." + t.name, t.tensor, false});
    }
  }
  return out;
}

Module& Module::apply(const std::function<void(Module&)>& f) {
  for (const auto& [name, child] : named_children()) child->apply(f);
  f(*this);
  return *this;
}

Module& Module::train(bool on) {
  return apply([on](Module& m) { m.mode_ = on; });
}

Module& Module::to(const std::string& device) {
  return apply([&](Module& m) {
    for (const NamedTensor& t : m.tensors())
      if (t.tensor.defined()) convert_({t.tensor}, DType::Void, device);
  });
}

Module& Module::to(DType dtype) {
  return apply([&](Module& m) {
    for (const NamedTensor& t : m.tensors())
      if (t.tensor.defined()) convert_({t.tensor}, dtype, "");
  });
}

void Module::zero_grad() {
  for (Tensor& p : parameters()) p.set_grad(Tensor());
}

Module& Module::requires_grad_(bool on) {
  for (Tensor& p : parameters()) p.set_requires_grad(on);
  return *this;
}

int64_t Module::register_forward_hook(ForwardHook hook) {
  if (!hook) fail<InvalidArgument>("register_forward_hook: no function given");
  hooks_.emplace(next_hook_, std::move(hook));
  return next_hook_++;
}

int64_t Module::register_forward_pre_hook(ForwardPreHook hook) {
  if (!hook) fail<InvalidArgument>("register_forward_pre_hook: no function given");
  pre_hooks_.emplace(next_hook_, std::move(hook));
  return next_hook_++;
}

void Module::remove_hook(int64_t handle) {
  if (hooks_.erase(handle) + pre_hooks_.erase(handle) == 0)
    fail<InvalidArgument>("remove_hook: no hook {}", handle);
}

Tensor Module::before(const Tensor& x) const {
  Tensor in = x;
  for (const auto& [handle, hook] : pre_hooks_) {
    if (const Tensor other = hook(*this, in); other.defined()) in = other;
  }
  return in;
}

Tensor Module::after(const Tensor& in, Tensor out) const {
  for (const auto& [handle, hook] : hooks_) {
    if (const Tensor other = hook(*this, in, out); other.defined()) out = other;
  }
  return out;
}

}  // namespace tuff::nn
