#include <tuff/optimizer.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "nn/amounts.h"
#include "tensor/impl.h"
#include "tensor/shards.h"

namespace tuff::optim {
namespace {

// Written by the host: a kernel for each shape would have to be compiled to run once.
// That of a parameter's shape lies as the parameter does.
Tensor state_like(const Sizes& sizes, double v, const Tensor& p) {
  const std::vector<float> values(size_t(int64_t(detail::product(sizes))), float(v));
  const Tensor state = Tensor::from(values, sizes, {.device = p.device()});
  return detail::on_devices_of(state, p).realize();
}

const Tensor* tensor_named(const nn::StateDict& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &nn::NamedTensor::name);
  return found == state.end() ? nullptr : &found->tensor;
}

std::string rate_name(size_t group) { return fmt::format("param_groups.{}.lr", group); }

constexpr const char* kNoGradient =
    "optimizer: no parameter has a gradient: call backward() before step()";

}  // namespace

Optimizer::Optimizer(std::vector<Group> groups) {
  std::unordered_set<const TensorImpl*> seen;
  for (Group& g : groups) {
    require_amount("optimizer", "lr", g.lr);
    if (g.parameters.empty()) fail<InvalidArgument>("optimizer: no parameters given");
    GroupState state{.lr = {}, .lr_value = g.lr, .initial_lr = {}};
    for (const Tensor& p : g.parameters) {
      const size_t i = parameters_.size();
      if (!p.requires_grad())
        fail<InvalidArgument>("optimizer: parameter {} has no requires_grad", i);
      if (groups.size() > 1 && !seen.insert(p.impl()).second)
        fail<InvalidArgument>("optimizer: parameter {} was given before", i);
      const auto same = [&](const Tensor& t) { return t.device() == p.device(); };
      if (std::ranges::none_of(state.lr, same)) state.lr.push_back(state_like({}, g.lr, p));
      group_of_.push_back(groups_.size());
      parameters_.push_back(p);
    }
    groups_.push_back(std::move(state));
  }
  if (parameters_.empty()) fail<InvalidArgument>("optimizer: no parameters given");
  kept_.resize(parameters_.size());
  Tensor::realize(parameters_);
}

const Tensor& Optimizer::on_device_of(size_t i, const std::vector<Tensor>& one) const {
  const std::string device = parameters_[i].device();
  for (const Tensor& o : one)
    if (o.device() == device) return o;
  fail<InvalidArgument>("optimizer: a parameter was moved to {}", device);
}

void Optimizer::keep(size_t i, const char* name, const Sizes& sizes, double value) {
  kept_[i].push_back({name, state_like(sizes, value, parameters_[i]), false});
}

void Optimizer::count_steps(bool in_state) {
  step_in_state_ = in_state;
  for (const Tensor& p : parameters_) {
    const auto same = [&](const Tensor& t) { return t.device() == p.device(); };
    if (std::ranges::none_of(step_, same)) step_.push_back(state_like({}, 0, p));
  }
}

const Tensor& Optimizer::correction(size_t i, double beta) {
  const Tensor& at = count(i);
  for (const Correction& c : corrections_)
    if (c.count == at.impl() && c.beta == beta) return c.value;
  corrections_.push_back({at.impl(), beta, 1.0 - (at * std::log2(beta)).exp2()});
  return corrections_.back().value;
}

void Optimizer::put(Tensor& to, const Tensor& value) {
  detail::store(to, applies_.defined() ? Tensor::where(applies_, value, to.detach()) : value);
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad(Tensor());
}

double Optimizer::initial_lr(size_t group) {
  GroupState& g = groups_.at(group);
  if (!g.initial_lr) g.initial_lr = g.lr_value;
  return *g.initial_lr;
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < groups_.size(); g++) set_lr(lr, g);
}

std::vector<Tensor> Optimizer::parameters(size_t group) const {
  std::vector<Tensor> out;
  for (size_t i = 0; i < parameters_.size(); i++)
    if (group_of_[i] == group) out.push_back(parameters_[i]);
  return out;
}

void Optimizer::set_lr(double lr, size_t group) {
  require_amount(kind(), "lr", lr);
  if (group >= groups_.size())
    fail<InvalidArgument>("{}: group {} of {}", kind(), group, groups_.size());
  const float v = float(lr);
  groups_[group].lr_value = lr;
  for (Tensor& t : groups_[group].lr) t.copy_from(&v, sizeof v);
}

std::vector<Tensor> Optimizer::advance() {
  const bool any = std::ranges::any_of(parameters_, [](auto& p) { return p.grad().defined(); });
  if (!any) return {};
  corrections_.clear();
  for (Tensor& step : step_) put(step, step + 1.0);
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Tensor g = parameters_[i].grad();
    if (g.defined()) update(i, g);
  }
  std::vector<Tensor> all = parameters_;
  for (const nn::StateDict& kept : kept_)
    for (const nn::NamedTensor& t : kept) all.push_back(t.tensor);
  all.insert(all.end(), step_.begin(), step_.end());
  // The gradients are consumed by the updates: they need no memory of their own beyond them.
  zero_grad();
  return all;
}

void Optimizer::step(const std::vector<Tensor>& also) {
  std::vector<Tensor> all = advance();
  if (all.empty()) fail<InvalidArgument>(kNoGradient);
  all.insert(all.end(), also.begin(), also.end());
  for (const Tensor& t : detail::pending_assigns()) all.push_back(t);
  Tensor::realize(all);
}

nn::StateDict Optimizer::state_of(size_t i) const {
  nn::StateDict out;
  if (step_in_state_) out.push_back({"step", count(i), false});
  out.insert(out.end(), kept_[i].begin(), kept_[i].end());
  return out;
}

nn::StateDict Optimizer::state_dict() const {
  nn::StateDict out;
  for (size_t g = 0; g < groups_.size(); g++) out.push_back({rate_name(g), lr(g), false});
  for (size_t i = 0; i < parameters_.size(); i++)
    nn::append_state(out, fmt::format("state.{}", i), state_of(i));
  return out;
}

void Optimizer::load_state_dict(const nn::StateDict& from) {
  const nn::StateDict own = state_dict();
  for (const nn::NamedTensor& t : from) {
    if (!tensor_named(own, t.name))
      fail<InvalidArgument>(
          "{} of {} parameters keeps no '{}', which the state has: it is that of "
          "another optimizer or of other parameters",
          kind(), parameters_.size(), t.name);
  }
  nn::StateDict into, values;  // a step count stands for all parameters of its device
  for (const nn::NamedTensor& t : own) {
    const Tensor* value = tensor_named(from, t.name);
    if (!value)
      fail<InvalidArgument>(
          "{}: the state has no '{}': it is that of another optimizer or of other "
          "parameters",
          kind(), t.name);
    const auto same = std::ranges::find_if(
        into, [&](const nn::NamedTensor& o) { return o.tensor.impl() == t.tensor.impl(); });
    if (same == into.end()) {
      into.push_back(t);
      values.push_back({t.name, *value, false});
    } else if (const double first = tensor_named(from, same->name)->item();
               value->item() != first) {
      fail<InvalidArgument>("{}: '{}' is {} and '{}' {}: parameters of one device share their step",
                            kind(), t.name, value->item(), same->name, first);
    }
  }
  for (size_t g = 0; g < groups_.size(); g++)
    require_amount(kind(), ("the state's " + rate_name(g)).c_str(),
                   tensor_named(values, rate_name(g))->item());
  nn::load_state_dict(into, values);
  for (size_t g = 0; g < groups_.size(); g++) set_lr(lr(g).item(), g);
  loaded();
}

OptimizerGroup::OptimizerGroup(std::vector<Optimizer*> optimizers)
    : optimizers_(std::move(optimizers)) {
  if (optimizers_.empty() || std::ranges::count(optimizers_, nullptr))
    fail<InvalidArgument>("OptimizerGroup: no optimizers given");
}

void OptimizerGroup::zero_grad() {
  for (Optimizer* o : optimizers_) o->zero_grad();
}

void OptimizerGroup::step(const std::vector<Tensor>& also) {
  std::vector<Tensor> all;
  for (Optimizer* o : optimizers_)
    for (Tensor& t : o->advance()) all.push_back(std::move(t));
  if (all.empty()) fail<InvalidArgument>(kNoGradient);
  all.insert(all.end(), also.begin(), also.end());
  for (const Tensor& t : detail::pending_assigns()) all.push_back(t);
  Tensor::realize(all);
}

nn::StateDict OptimizerGroup::state_dict() const {
  nn::StateDict out;
  for (size_t i = 0; i < optimizers_.size(); i++)
    nn::append_state(out, std::to_string(i), optimizers_[i]->state_dict());
  return out;
}

void OptimizerGroup::load_state_dict(const nn::StateDict& from) {
  std::vector<nn::StateDict> parts(optimizers_.size());
  for (const nn::NamedTensor& t : from) {
    const size_t dot = t.name.find('.');
    const std::string number = t.name.substr(0, dot);
    size_t i = 0;
    while (i < parts.size() && std::to_string(i) != number) i++;
    if (i == parts.size() || dot == std::string::npos)
      fail<InvalidArgument>("OptimizerGroup: there is no optimizer for '{}'", t.name);
    parts[i].push_back({t.name.substr(dot + 1), t.tensor, false});
  }
  for (size_t i = 0; i < parts.size(); i++) optimizers_[i]->load_state_dict(parts[i]);
}

}  // namespace tuff::optim
