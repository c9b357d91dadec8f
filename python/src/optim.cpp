// tuff.optim: optimizers, gradient clipping and learning-rate schedules.
#include <tuff/optim.h>

#include "module.h"

namespace tuff::python {
namespace {

using namespace optim;
using py::arg;
using Tensors = std::vector<Tensor>;

void bind_optimizers(py::module_& m) {
  py::class_<Optimizer>(m, "Optimizer",
                        "Parameters with a gradient each, and how step() moves them.")
      .def("zero_grad", &Optimizer::zero_grad)
      .def("step", &Optimizer::step, arg("also") = Tensors{},
           "Realizes parameters, state and `also` (the loss, say) together.")
      .def("set_lr", &Optimizer::set_lr, arg("lr"), "Writes the device tensors.")
      .def_property_readonly("lr", &Optimizer::lr, "The tensor that holds the learning rate.")
      .def_property_readonly("lr_value", &Optimizer::lr_value, "What lr was set to last.")
      .def_property_readonly("parameters", &Optimizer::parameters)
      .def(
          "state_dict", [](const Optimizer& o) { return dict_of(o.state_dict()); },
          "Learning rate, steps and moments by PyTorch's names: \"state.0.exp_avg\".")
      .def(
          "load_state_dict",
          [](Optimizer& o, const py::dict& state) { o.load_state_dict(state_from(state)); },
          arg("state"), "InvalidArgument or ShapeError for the state of another optimizer.");
  py::class_<SGD, Optimizer>(m, "SGD", "v = momentum*v + g + weight_decay*p;  p -= lr*v")
      .def(py::init([](Tensors p, double lr, double momentum, double weight_decay, bool nesterov) {
             return SGD(std::move(p), SGD::Options{lr, momentum, weight_decay, nesterov});
           }),
           arg("parameters"), arg("lr") = 1e-2, arg("momentum") = 0.0, arg("weight_decay") = 0.0,
           arg("nesterov") = false);
  py::class_<Adam, Optimizer>(m, "Adam", "Bias-corrected moments.")
      .def(py::init([](Tensors p, double lr, double beta1, double beta2, double eps,
                       double weight_decay) {
             return Adam(std::move(p), Adam::Options{lr, beta1, beta2, eps, weight_decay});
           }),
           arg("parameters"), arg("lr") = 1e-3, arg("beta1") = 0.9, arg("beta2") = 0.999,
           arg("eps") = 1e-8, arg("weight_decay") = 0.0);
  py::class_<AdamW, Adam>(m, "AdamW", "Adam with decoupled weight decay.")
      .def(py::init([](Tensors p, double lr, double beta1, double beta2, double eps,
                       double weight_decay, bool decay_matrices_only) {
             return AdamW(std::move(p),
                          AdamW::Options{lr, beta1, beta2, eps, weight_decay, decay_matrices_only});
           }),
           arg("parameters"), arg("lr") = 1e-3, arg("beta1") = 0.9, arg("beta2") = 0.999,
           arg("eps") = 1e-8, arg("weight_decay") = 0.01, arg("decay_matrices_only") = false);
}

void bind_schedules(py::module_& m) {
  using KeepsOptimizer = py::keep_alive<1, 2>;
  py::class_<LRScheduler>(m, "LRScheduler",
                          "A learning rate per step: step() after the optimizer's.")
      .def("step", &LRScheduler::step)
      .def_property_readonly("last_step", &LRScheduler::last_step)
      .def("set_last_step", &LRScheduler::set_last_step, arg("step"),
           "As after so many calls of step().")
      .def("get_last_lr", &LRScheduler::get_last_lr)
      .def("rate", &LRScheduler::rate, arg("step"), "The rate of a step, counted from 0.");
  py::class_<StepLR, LRScheduler>(m, "StepLR", "base * gamma^(step / step_size)")
      .def(py::init<Optimizer&, int64_t, double>(), arg("optimizer"), arg("step_size"),
           arg("gamma") = 0.1, KeepsOptimizer());
  py::class_<CosineAnnealingLR, LRScheduler>(m, "CosineAnnealingLR",
                                             "From the base to eta_min along half a cosine.")
      .def(py::init<Optimizer&, int64_t, double>(), arg("optimizer"), arg("T_max"),
           arg("eta_min") = 0.0, KeepsOptimizer());
  py::class_<LinearLR, LRScheduler>(m, "LinearLR", "A warm-up in total_iters steps.")
      .def(py::init<Optimizer&, double, double, int64_t>(), arg("optimizer"),
           arg("start_factor") = 1.0 / 3, arg("end_factor") = 1.0, arg("total_iters") = 5,
           KeepsOptimizer());
  py::class_<OneCycleLR, LRScheduler>(m, "OneCycleLR", "Up to max_lr and down to almost nothing.")
      .def(py::init<Optimizer&, double, int64_t, double, double, double>(), arg("optimizer"),
           arg("max_lr"), arg("total_steps"), arg("pct_start") = 0.3, arg("div_factor") = 25.0,
           arg("final_div_factor") = 1e4, KeepsOptimizer());
  py::class_<LambdaLR, LRScheduler>(m, "LambdaLR", "base * factor(step)")
      .def(py::init<Optimizer&, std::function<double(int64_t)>>(), arg("optimizer"), arg("factor"),
           KeepsOptimizer());
}

}  // namespace

void bind_optim(py::module_& parent) {
  py::module_ m = parent.def_submodule("optim", "Optimizers, clipping and learning rates.");
  bind_optimizers(m);
  bind_schedules(m);
  m.def("clip_grad_norm_", &clip_grad_norm_, arg("parameters"), arg("max_norm"),
        arg("norm_type") = 2.0,
        "Scales gradients so that their norm together is at most max_norm.");
  m.def("clip_grad_value_", &clip_grad_value_, arg("parameters"), arg("clip_value"),
        "Clamps every gradient to -clip_value..clip_value.");
}

}  // namespace tuff::python
