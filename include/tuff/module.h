// Module: what has parameters, buffers and other modules inside, each under a name. Layers are
// modules (nn.h), models are made of them: members() says what there is, everything else follows
// from it. Called by users; must never know what a layer computes.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::nn {

using Parameters = std::vector<Tensor>;

/// What a module keeps, by PyTorch's names: parameters and, not trained, buffers.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool trained = true;
};
using StateDict = std::vector<NamedTensor>;

/// The trained tensors of a state.
Parameters parameters_of(const StateDict& state);
/// `state` with "prefix." before its names, appended to `to`: how structs that are no modules nest.
void append_state(StateDict& to, std::string_view prefix, const StateDict& state);

/// What load_state_dict() found no value, and no place, for.
struct LoadReport {
  std::vector<std::string> missing_keys, unexpected_keys;
};
/// Assigns values by name, cast and moved to where they go, and realizes them. With `strict` an
/// InvalidArgument names what `from` lacks or has too much; without, what both have is assigned and
/// the report names the rest. ShapeError for what differs in shape. Waits for values that are read
/// from files; IoError, and nothing is assigned, where that fails. "num_batches_tracked" of
/// PyTorch's BatchNorm, which nothing here computes with, is taken and left beside.
LoadReport load_state_dict(const StateDict& into, const StateDict& from, bool strict = true);

/// Gives tensors another element type (floats alone; Void keeps it) and another device ("" keeps
/// it), gradients too: all that share a tensor see it, optimizers among them, which have to be made
/// anew for another device. InvalidArgument inside a function that a Jit captures.
void convert_(const std::vector<Tensor>& tensors, DType dtype, const std::string& device);

class Module;

/// What a module consists of, told by its members(), in the order of its state.
class Members {
 public:
  /// An undefined tensor is a parameter that this module does without: a bias, say.
  void parameter(std::string name, const Tensor& t) {
    tensors_.push_back({std::move(name), const_cast<Tensor*>(&t), true, true});
  }
  /// Kept and moved along, not trained; state_dict() leaves it out unless it is persistent.
  void buffer(std::string name, const Tensor& t, bool persistent = true) {
    tensors_.push_back({std::move(name), const_cast<Tensor*>(&t), false, persistent});
  }
  void module(std::string name, const Module& m) {
    modules_.emplace_back(std::move(name), const_cast<Module*>(&m));
  }

 private:
  friend class Module;
  struct Entry {
    std::string name;
    Tensor* tensor;
    bool trained, persistent;
  };
  std::vector<Entry> tensors_;
  std::vector<std::pair<std::string, Module*>> modules_;
};

/// A base for layers and models. A model says what it is made of, and computes:
///
///     struct Net : nn::Module {
///       nn::Linear in{2, 64}, out{64, 2};
///       Tensor operator()(const Tensor& x) const { return out(in(x).relu()); }
///       void members(nn::Members& m) const override { m.module("in", in), m.module("out", out); }
///     };
///
/// Modules are values: copies share their tensors, and have modes and hooks of their own.
///
/// Mode: a module computes as the thread's training() says, until train() or eval() has been called
/// for it or for a module that it is part of; from then on it computes as the last of these calls
/// said, also inside of a TrainingMode that says otherwise.
class Module {
 public:
  using NamedModules = std::vector<std::pair<std::string, Module*>>;
  /// Sees what a module was given and gave; what it returns, if defined, is given instead.
  using ForwardHook = std::function<Tensor(const Module&, const Tensor& in, const Tensor& out)>;
  /// Sees what a module is given; what it returns, if defined, is given to it instead.
  using ForwardPreHook = std::function<Tensor(const Module&, const Tensor& in)>;

  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  /// What it consists of; for those who derive.
  virtual void members(Members& m) const = 0;

  /// All that a checkpoint holds, in the order of members(); names of parts begin with theirs and a
  /// dot. The tensors are the module's own.
  StateDict state_dict() const;
  LoadReport load_state_dict(const StateDict& from, bool strict = true) {
    return nn::load_state_dict(state_dict(), from, strict);
  }
  /// What an optimizer trains; a tensor that several names share once, under the first.
  Parameters parameters() const { return parameters_of(named_parameters()); }
  StateDict named_parameters() const;
  /// Those that state_dict() leaves out too.
  StateDict named_buffers() const;
  /// Its parts, and theirs. Pointers are good as long as the module is where it is.
  NamedModules named_children() const;
  /// Itself first, under "", each once.
  NamedModules named_modules() const;
  /// Its own tensors and, undefined, those that it does without; not those of its parts.
  StateDict tensors() const;
  /// Puts a tensor in the place of its own one; InvalidArgument where there is none of that name.
  void set_tensor(std::string_view name, const Tensor& t);

  /// See above; all parts too.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool training() const { return mode_.value_or(tuff::training()); }
  /// f of every part and of the module, inner ones first.
  Module& apply(const std::function<void(Module&)>& f);
  /// convert_() of everything; of the floats alone for a dtype.
  Module& to(const std::string& device);
  Module& to(DType dtype);
  void zero_grad();
  /// Of all parameters: frozen ones get no gradient, and no optimizer takes them.
  Module& requires_grad_(bool on = true);

  /// Hooks of a module of one tensor, in the order of their registration. Returns what
  /// remove_hook() takes.
  int64_t register_forward_hook(ForwardHook hook);
  int64_t register_forward_pre_hook(ForwardPreHook hook);
  void remove_hook(int64_t handle);

 protected:
  /// forward(x) in the module's mode and with its hooks: what operator() of one tensor returns.
  template <class Forward>
  Tensor run(const Tensor& x, Forward&& forward) const {
    std::optional<TrainingMode> mode;
    if (mode_) mode.emplace(*mode_);
    if (hooks_.empty() && pre_hooks_.empty()) return forward(x);
    const Tensor in = before(x);
    return after(in, forward(in));
  }

 private:
  Members all() const;
  Tensor before(const Tensor& x) const;
  Tensor after(const Tensor& in, Tensor out) const;
  std::optional<bool> mode_;
  std::map<int64_t, ForwardHook> hooks_;
  std::map<int64_t, ForwardPreHook> pre_hooks_;
  int64_t next_hook_ = 1;
};

/// Modules of one class under their numbers; called by whom they belong to.
template <std::derived_from<Module> M>
class ModuleList : public Module {
 public:
  ModuleList() = default;
  explicit ModuleList(std::vector<M> modules) : modules_(std::move(modules)) {}
  ModuleList& append(M module) {
    modules_.push_back(std::move(module));
    return *this;
  }
  size_t size() const { return modules_.size(); }
  M& operator[](size_t i) { return modules_.at(i); }
  const M& operator[](size_t i) const { return modules_.at(i); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  void members(Members& m) const override {
    for (size_t i = 0; i < modules_.size(); i++) m.module(std::to_string(i), modules_[i]);
  }

 private:
  std::vector<M> modules_;
};

/// Modules of one class under names, in the order in which they came.
template <std::derived_from<Module> M>
class ModuleDict : public Module {
 public:
  /// In the place of one that had the name.
  ModuleDict& set(const std::string& name, M module) {
    for (auto& [known, m] : modules_) {
      if (known == name) return m = std::move(module), *this;
    }
    modules_.emplace_back(name, std::move(module));
    return *this;
  }
  size_t size() const { return modules_.size(); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// InvalidArgument for a name that is not there.
  const M& operator[](std::string_view name) const {
    if (const M* m = find(name)) return *m;
    throw InvalidArgument("ModuleDict: no module '" + std::string(name) + "'");
  }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  void members(Members& m) const override {
    for (const auto& [name, module] : modules_) m.module(name, module);
  }

 private:
  const M* find(std::string_view name) const {
    for (const auto& [known, m] : modules_) {
      if (known == name) return &m;
    }
    return nullptr;
  }
  std::vector<std::pair<std::string, M>> modules_;
};

}  // namespace tuff::nn
