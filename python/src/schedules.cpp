// tuff.optim: learning-rate schedules.
#include <tuff/schedules.h>

#include "keep_items.h"
#include "module.h"

namespace tuff::python {
namespace {

using namespace optim;
using py::arg;
using KeepsOptimizer = py::keep_alive<1, 2>;
using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

template <class Kind>
using SchedulerClass = py::class_<Kind, LRScheduler, std::shared_ptr<Kind>>;

void bind_base(py::module_& m) {
  py::class_<LRScheduler, std::shared_ptr<LRScheduler>>(
      m, "LRScheduler", "A learning rate per step and group: step() after the optimizer's.")
      .def("step", &LRScheduler::step)
      .def_property_readonly("last_step", &LRScheduler::last_step)
      .def("set_last_step", &LRScheduler::set_last_step, arg("step"),
           "As after so many calls of step().")
      .def("get_last_lr", &LRScheduler::get_last_lr, arg("group") = 0)
      .def("rate", &LRScheduler::rate, arg("step"),
           "The rate of a step, counted from 0, of the first group.")
      .def("rate_of", &LRScheduler::rate_of, arg("base"), arg("step"),
           "That of a group whose rate was `base`.")
      .def(
          "state_dict", [](const LRScheduler& s) { return dict_of(s.state_dict()); },
          "\"last_epoch\", PyTorch's name of last_step.")
      .def(
          "load_state_dict",
          [](LRScheduler& s, const py::dict& state) { s.load_state_dict(state_from(state)); },
          arg("state"));
}

void bind_steps(py::module_& m) {
  SchedulerClass<StepLR>(m, "StepLR", "base * gamma^(step / step_size)")
      .def(py::init<Optimizer&, int64_t, double>(), arg("optimizer"), arg("step_size"),
           arg("gamma") = 0.1, KeepsOptimizer());
  SchedulerClass<MultiStepLR>(m, "MultiStepLR", "base * gamma^k, k milestones reached")
      .def(py::init<Optimizer&, std::vector<int64_t>, double>(), arg("optimizer"),
           arg("milestones"), arg("gamma") = 0.1, KeepsOptimizer());
  SchedulerClass<ExponentialLR>(m, "ExponentialLR", "base * gamma^step")
      .def(py::init<Optimizer&, double>(), arg("optimizer"), arg("gamma"), KeepsOptimizer());
  SchedulerClass<PolynomialLR>(m, "PolynomialLR", "base * (1 - step/total_iters)^power")
      .def(py::init<Optimizer&, int64_t, double>(), arg("optimizer"), arg("total_iters") = 5,
           arg("power") = 1.0, KeepsOptimizer());
  SchedulerClass<ConstantLR>(m, "ConstantLR", "base * factor for total_iters steps, then base")
      .def(py::init<Optimizer&, double, int64_t>(), arg("optimizer"), arg("factor") = 1.0 / 3,
           arg("total_iters") = 5, KeepsOptimizer());
  SchedulerClass<LinearLR>(m, "LinearLR", "A warm-up in total_iters steps.")
      .def(py::init<Optimizer&, double, double, int64_t>(), arg("optimizer"),
           arg("start_factor") = 1.0 / 3, arg("end_factor") = 1.0, arg("total_iters") = 5,
           KeepsOptimizer());
  SchedulerClass<LambdaLR>(m, "LambdaLR", "base * factor(step)")
      .def(py::init<Optimizer&, std::function<double(int64_t)>>(), arg("optimizer"), arg("factor"),
           KeepsOptimizer());
}

void bind_cycles(py::module_& m) {
  SchedulerClass<CosineAnnealingLR>(m, "CosineAnnealingLR",
                                    "From the base to eta_min along half a cosine.")
      .def(py::init<Optimizer&, int64_t, double>(), arg("optimizer"), arg("T_max"),
           arg("eta_min") = 0.0, KeepsOptimizer());
  SchedulerClass<CosineAnnealingWarmRestarts>(
      m, "CosineAnnealingWarmRestarts", "The same again and again, each time T_mult as long.")
      .def(py::init<Optimizer&, int64_t, int64_t, double>(), arg("optimizer"), arg("T_0"),
           arg("T_mult") = 1, arg("eta_min") = 0.0, KeepsOptimizer());
  SchedulerClass<OneCycleLR>(m, "OneCycleLR", "Up to max_lr and down to almost nothing.")
      .def(py::init<Optimizer&, double, int64_t, double, double, double>(), arg("optimizer"),
           arg("max_lr"), arg("total_steps"), arg("pct_start") = 0.3, arg("div_factor") = 25.0,
           arg("final_div_factor") = 1e4, KeepsOptimizer());
  SchedulerClass<CyclicLR>(m, "CyclicLR", "Up to max_lr and back to base_lr, again and again.")
      .def(py::init([](Optimizer& o, double base_lr, double max_lr, int64_t up,
                       std::optional<int64_t> down, const std::string& mode, double gamma) {
             return std::make_shared<CyclicLR>(o, base_lr, max_lr, up, down, mode, gamma);
           }),
           arg("optimizer"), arg("base_lr"), arg("max_lr"), arg("step_size_up") = 2000,
           arg("step_size_down") = py::none(), arg("mode") = "triangular", arg("gamma") = 1.0,
           KeepsOptimizer());
}

void bind_composed(py::module_& m) {
  SchedulerClass<SequentialLR>(m, "SequentialLR", "One schedule after the other, at milestones.")
      .def(py::init<Optimizer&, Schedulers, std::vector<int64_t>>(), arg("optimizer"),
           arg("schedulers"), arg("milestones"), KeepsOptimizer(), KeepItems<2>());
  SchedulerClass<ChainedScheduler>(m, "ChainedScheduler", "The product of several schedules.")
      .def(py::init<Schedulers>(), arg("schedulers"), KeepItems<1>());
  py::class_<ReduceLROnPlateau>(m, "ReduceLROnPlateau",
                                "Lower rates when a metric has not improved for long.")
      .def(py::init([](Optimizer& o, const std::string& mode, double factor, int64_t patience,
                       double threshold, const std::string& threshold_mode, int64_t cooldown,
                       double min_lr, double eps) {
             return ReduceLROnPlateau(o, {mode, factor, patience, threshold, threshold_mode,
                                          cooldown, min_lr, eps});
           }),
           arg("optimizer"), arg("mode") = "min", arg("factor") = 0.1, arg("patience") = 10,
           arg("threshold") = 1e-4, arg("threshold_mode") = "rel", arg("cooldown") = 0,
           arg("min_lr") = 0.0, arg("eps") = 1e-8, KeepsOptimizer())
      .def("step", &ReduceLROnPlateau::step, arg("metric"))
      .def("get_last_lr", &ReduceLROnPlateau::get_last_lr, arg("group") = 0)
      .def(
          "state_dict", [](const ReduceLROnPlateau& s) { return dict_of(s.state_dict()); },
          "\"best\" and the counts; rates are in the optimizer's state.")
      .def(
          "load_state_dict",
          [](ReduceLROnPlateau& s, const py::dict& state) {
            s.load_state_dict(state_from(state));
          },
          arg("state"));
}

}  // namespace

void bind_schedules(py::module_& m) {
  bind_base(m);
  bind_steps(m);
  bind_cycles(m);
  bind_composed(m);
}

}  // namespace tuff::python
