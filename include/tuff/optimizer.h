// Optimizer: what all optimizers of optim.h are, and the rules of those who write one. Learning
// rate and step count live in device tensors, so a captured step replays with whatever they hold.
// step() assigns all parameters and state in one schedule and realizes it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tuff/module.h>
#include <tuff/tensor.h>

namespace tuff::optim {

/// Parameters that an optimizer moves by options of their own.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> parameters;
  Options options;
};

/// Parameters with a gradient each, in one or more groups, and how step() moves them. Parameters
/// may be on several devices, each of which has its own rates and step count.
class Optimizer {
 public:
  /// A group's parameters and rate. InvalidArgument without parameters, or for one that two groups
  /// have, or without requires_grad; for a rate, and for options of those who derive, that are
  /// negative, infinite or NaN; for a beta that is not below 1.
  struct Group {
    std::vector<Tensor> parameters;
    double lr;
  };
  explicit Optimizer(std::vector<Group> groups);
  Optimizer(std::vector<Tensor> parameters, double lr)
      : Optimizer(std::vector<Group>{{std::move(parameters), lr}}) {}
  virtual ~Optimizer() = default;
  void zero_grad();
  /// Realizes parameters, state, assignments that are pending (running statistics) and `also` (the
  /// loss, say) together. InvalidArgument if no parameter has a gradient.
  void step(const std::vector<Tensor>& also = {});
  /// Writes the device tensors of all groups, or of one; no allocation. InvalidArgument for a
  /// negative, infinite or NaN rate (of a schedule, too), and inside a function that a Jit
  /// captures.
  void set_lr(double lr);
  void set_lr(double lr, size_t group);
  /// On the device of the group's first parameter.
  const Tensor& lr(size_t group = 0) const { return groups_.at(group).lr[0]; }
  /// What lr() was set to last.
  double lr_value(size_t group = 0) const { return groups_.at(group).lr_value; }
  /// How many groups there are.
  size_t groups() const { return groups_.size(); }
  /// Of all groups, in order.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Those of one group.
  std::vector<Tensor> parameters(size_t group) const;
  /// What a checkpoint holds beside the parameters, by PyTorch's names: per group
  /// "param_groups.0.lr" and per parameter, in the constructor's order, "state.0.step",
  /// "state.0.exp_avg" and so on. Options are the constructor's and are not in it. The tensors are
  /// the optimizer's own.
  nn::StateDict state_dict() const;
  /// InvalidArgument names what `from` lacks or has too much, as the state of another optimizer
  /// does; ShapeError what differs in shape. Nothing has changed then.
  void load_state_dict(const nn::StateDict& from);
  /// The rate that schedules start from: the group's when the first of them was made.
  double initial_lr(size_t group);

 protected:
  virtual const char* kind() const = 0;
  // Assigns new versions for parameter i and its state.
  virtual void update(size_t i, const Tensor& gradient) = 0;
  // Assigns a new version; where a GradScaler has found gradients that are not finite, the old one
  // again. For parameters and state alike.
  void put(Tensor& to, const Tensor& value);
  // After load_state_dict().
  virtual void loaded() {}

  // State that is kept of parameter i under a name, F32, filled with `value`; kept(i, k) is the
  // k-th that it was given.
  void keep(size_t i, const char* name, const Sizes& sizes, double value = 0);
  Tensor& kept(size_t i, size_t k) { return kept_[i][k].tensor; }
  // A count of steps on every device; in the state where PyTorch's optimizer has one.
  void count_steps(bool in_state = true);
  // Of the device of parameter i: its group's rate, the count (1 in the first step), and
  // 1 - beta^count.
  const Tensor& rate(size_t i) const { return on_device_of(i, groups_[group_of_[i]].lr); }
  const Tensor& count(size_t i) const { return on_device_of(i, step_); }
  const Tensor& correction(size_t i, double beta);
  size_t group_of(size_t i) const { return group_of_[i]; }
  const std::vector<Tensor>& counts() const { return step_; }

  std::vector<Tensor> parameters_;

 private:
  friend class OptimizerGroup;
  friend class GradScaler;
  struct GroupState {
    std::vector<Tensor> lr;  // by device, in the order of the parameters
    double lr_value;
    std::optional<double> initial_lr;
  };
  struct Correction {
    const TensorImpl* count;
    double beta;
    Tensor value;
  };
  // The element for the device of parameter i, where one[k] belongs to the k-th device.
  const Tensor& on_device_of(size_t i, const std::vector<Tensor>& one) const;
  nn::StateDict state_of(size_t i) const;
  // Assigns without realizing: returns what step() has to realize; nothing if no parameter has a
  // gradient.
  std::vector<Tensor> advance();
  Tensor applies_;  // during a step of a GradScaler: whether it counts
  std::vector<GroupState> groups_;
  std::vector<size_t> group_of_;  // by parameter
  std::vector<nn::StateDict> kept_;
  std::vector<Tensor> step_;
  bool step_in_state_ = false;
  std::vector<Correction> corrections_;  // of the last step: what lives is computed once for all
};

/// An optimizer whose groups have options of one kind, with a member `lr`.
template <class GroupOptions>
class GroupedOptimizer : public Optimizer {
 public:
  using Groups = std::vector<ParamGroup<GroupOptions>>;

 protected:
  explicit GroupedOptimizer(const Groups& groups) : Optimizer(rates_of(groups)) {
    for (const auto& g : groups) options_.push_back(g.options);
  }
  const GroupOptions& options(size_t i) const { return options_[group_of(i)]; }

 private:
  static std::vector<Group> rates_of(const Groups& groups) {
    std::vector<Group> out;
    for (const auto& g : groups) out.push_back({g.parameters, g.options.lr});
    return out;
  }
  std::vector<GroupOptions> options_;
};

/// Several optimizers that step together, in one schedule: matrices by Muon, the rest by AdamW.
/// They have to outlive it.
class OptimizerGroup {
 public:
  /// InvalidArgument without optimizers.
  explicit OptimizerGroup(std::vector<Optimizer*> optimizers);
  void zero_grad();
  /// As Optimizer::step(); those without gradients stay.
  void step(const std::vector<Tensor>& also = {});
  /// The optimizers' states, their names behind "0.", "1." and so on.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& from);

 private:
  std::vector<Optimizer*> optimizers_;
};

}  // namespace tuff::optim
