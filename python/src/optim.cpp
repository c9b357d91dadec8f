// tuff.optim: optimizers, gradient clipping and averages of parameters.
#include <tuff/optim.h>

#include "keep_items.h"
#include "module.h"

namespace tuff::python {
namespace {

using namespace optim;
using py::arg;
using Tensors = std::vector<Tensor>;

// An argument of an optimizer, and what of its options it is.
template <class Options, class T>
struct Field {
  const char* name;
  T (*get)(const Options&);
  void (*set)(Options&, T);
};

template <class Options, class... Members>
ParamGroup<Options> group_from(const py::dict& given, Options options,
                               const Field<Options, Members>&... fields) {
  ParamGroup<Options> group;
  for (const auto& [key, value] : given) {
    if (!py::isinstance<py::str>(key)) throw py::type_error("names of options are str");
    const std::string name = text_of(key);
    const auto take = [&, v = value](const auto& field) {
      if (name != field.name) return false;
      field.set(options, v.template cast<decltype(field.get(options))>());
      return true;
    };
    try {
      if (name == "params")
        group.parameters = value.template cast<Tensors>();
      else if (!(take(fields) || ...))
        throw py::type_error("a group of parameters has no option \"" + name + "\"");
    } catch (const py::cast_error&) {
      throw py::type_error("\"" + name + "\" of a group of parameters cannot be a " +
                           type_name(value));
    }
  }
  group.options = options;
  return group;
}

template <class Kind, class Base = Optimizer, class... Members>
void optimizer(py::module_& m, const char* name, const char* doc,
               Field<typename Kind::Options, Members>... fields) {
  using Options = typename Kind::Options;
  using Groups = std::vector<py::dict>;
  const Options defaults;
  const auto of_tensors = [fields...](const Tensors& parameters, Members... values) {
    Options options;
    (fields.set(options, values), ...);
    return std::make_unique<Kind>(parameters, options);
  };
  // Dicts of "params" and options by name.
  const auto of_groups = [fields...](const Groups& parameters, Members... values) {
    Options options;
    (fields.set(options, values), ...);
    typename Kind::Groups groups;
    for (const py::dict& g : parameters)
      groups.push_back(group_from<Options, Members...>(g, options, fields...));
    return std::make_unique<Kind>(groups);
  };
  // As of filter().
  const auto of_any = [of_tensors, of_groups](const py::iterator& parameters, Members... values) {
    const py::list all(parameters);
    const bool groups = !all.empty() && py::isinstance<py::dict>(all[0]);
    try {
      return groups ? of_groups(all.cast<Groups>(), values...)
                    : of_tensors(all.cast<Tensors>(), values...);
    } catch (const py::cast_error&) {
      throw py::type_error("params: an iterator of tensors or of dicts is wanted");
    }
  };
  py::class_<Kind, Base>(m, name, doc)
      .def(py::init(of_tensors), arg("params"), (arg(fields.name) = fields.get(defaults))...)
      .def(py::init(of_groups), arg("params"), (arg(fields.name) = fields.get(defaults))...)
      .def(py::init(of_any), arg("params"), (arg(fields.name) = fields.get(defaults))...);
}

// For a Kind's options: TUFF_FIELD(SGD, lr) is the argument lr, SGDOptions::lr.
#define TUFF_FIELD(Kind, name)                                  \
  Field<Kind::Options, decltype(Kind::Options::name)> {         \
    #name, [](const Kind::Options& o) { return o.name; },       \
        [](Kind::Options& o, auto value) { o.name = value; }    \
  }

template <class Options>
Field<Options, std::pair<double, double>> betas_of() {
  return {"betas", [](const Options& o) { return std::pair(o.beta1, o.beta2); },
          [](Options& o, std::pair<double, double> betas) {
            std::tie(o.beta1, o.beta2) = betas;
          }};
}

void bind_optimizer(py::module_& m) {
  py::class_<Optimizer>(m, "Optimizer",
                        "Parameters with a gradient each, in one or more groups, and how step() "
                        "moves them.")
      .def(
          "zero_grad",
          [](Optimizer& o, bool set_to_none) {
            if (set_to_none) return o.zero_grad();
            for (Tensor p : o.parameters())
              if (const Tensor g = p.grad(); g.defined()) p.set_grad(g.zeros_like());
          },
          arg("set_to_none") = true,
          "Takes the parameters' gradients away, or puts zeros in their places.")
      .def("step", &Optimizer::step, arg("also") = Tensors{},
           "Realizes parameters, state and `also` (the loss, say) together.")
      .def("set_lr", py::overload_cast<double>(&Optimizer::set_lr), arg("lr"),
           "Writes the device tensors of all groups.")
      .def("set_lr", py::overload_cast<double, size_t>(&Optimizer::set_lr), arg("lr"),
           arg("group"), "Those of one group.")
      .def_property_readonly(
          "lr", [](const Optimizer& o) { return o.lr(); },
          "The tensor that holds the learning rate of the first group.")
      .def_property_readonly(
          "lr_value", [](const Optimizer& o) { return o.lr_value(); },
          "What lr was set to last.")
      .def_property_readonly(
          "lr_values",
          [](const Optimizer& o) {
            std::vector<double> out;
            for (size_t g = 0; g < o.groups(); g++) out.push_back(o.lr_value(g));
            return out;
          },
          "The same of every group.")
      .def_property_readonly(
          "parameters", [](const Optimizer& o) { return o.parameters(); })
      .def_property_readonly(
          "_parameters_by_group",
          [](const Optimizer& o) {
            std::vector<Tensors> out;
            for (size_t g = 0; g < o.groups(); g++) out.push_back(o.parameters(g));
            return out;
          })
      .def(
          "state_dict", [](const Optimizer& o) { return dict_of(o.state_dict()); },
          "Learning rates, steps and moments by PyTorch's names: \"state.0.exp_avg\".")
      .def(
          "load_state_dict",
          [](Optimizer& o, const py::dict& state) { o.load_state_dict(state_from(state)); },
          arg("state"), "InvalidArgument or ShapeError for the state of another optimizer.");
  py::class_<OptimizerGroup>(m, "OptimizerGroup",
                             "Several optimizers that step together, in one schedule.")
      .def(py::init<std::vector<Optimizer*>>(), arg("optimizers"), KeepItems<1>())
      .def("zero_grad", &OptimizerGroup::zero_grad)
      .def("step", &OptimizerGroup::step, arg("also") = Tensors{}, "As Optimizer.step().")
      .def(
          "state_dict", [](const OptimizerGroup& o) { return dict_of(o.state_dict()); },
          "The optimizers' states, their names behind \"0.\", \"1.\" and so on.")
      .def(
          "load_state_dict",
          [](OptimizerGroup& o, const py::dict& state) { o.load_state_dict(state_from(state)); },
          arg("state"));
}

#define TUFF_BETAS(Kind)                                                                       \
  TUFF_FIELD(Kind, lr), betas_of<Kind::Options>(), TUFF_FIELD(Kind, eps),                      \
      TUFF_FIELD(Kind, weight_decay)

void bind_moments(py::module_& m) {
  optimizer<SGD>(m, "SGD", "v = momentum*v + (1 - dampening)*(g + weight_decay*p);  p -= lr*v",
                 TUFF_FIELD(SGD, lr), TUFF_FIELD(SGD, momentum), TUFF_FIELD(SGD, dampening),
                 TUFF_FIELD(SGD, weight_decay), TUFF_FIELD(SGD, nesterov),
                 TUFF_FIELD(SGD, maximize));
  optimizer<Adam>(m, "Adam", "Bias-corrected moments.", TUFF_BETAS(Adam),
                  TUFF_FIELD(Adam, amsgrad), TUFF_FIELD(Adam, maximize));
  optimizer<AdamW, Adam>(m, "AdamW", "Adam with decoupled weight decay.", TUFF_BETAS(AdamW),
                         TUFF_FIELD(AdamW, amsgrad), TUFF_FIELD(AdamW, maximize),
                         TUFF_FIELD(AdamW, decay_matrices_only));
  optimizer<Adamax>(m, "Adamax", "Adam by the largest gradient so far.", TUFF_BETAS(Adamax),
                    TUFF_FIELD(Adamax, maximize));
  optimizer<NAdam>(m, "NAdam", "Adam with Nesterov's momentum.", TUFF_BETAS(NAdam),
                   TUFF_FIELD(NAdam, momentum_decay), TUFF_FIELD(NAdam, maximize));
  optimizer<RAdam>(m, "RAdam", "Adam without second moments while little is known of them.",
                   TUFF_BETAS(RAdam), TUFF_FIELD(RAdam, maximize));
  optimizer<LAMB>(m, "LAMB", "Adam's direction, scaled in every tensor to its norm.",
                  TUFF_BETAS(LAMB), TUFF_FIELD(LAMB, maximize));
  optimizer<Lion>(m, "Lion", "Steps of the momentum's sign.", TUFF_FIELD(Lion, lr),
                  betas_of<Lion::Options>(), TUFF_FIELD(Lion, weight_decay),
                  TUFF_FIELD(Lion, maximize));
}

void bind_others(py::module_& m) {
  optimizer<RMSprop>(m, "RMSprop", "Gradients over the root of their mean square.",
                     TUFF_FIELD(RMSprop, lr), TUFF_FIELD(RMSprop, alpha), TUFF_FIELD(RMSprop, eps),
                     TUFF_FIELD(RMSprop, weight_decay), TUFF_FIELD(RMSprop, momentum),
                     TUFF_FIELD(RMSprop, centered), TUFF_FIELD(RMSprop, maximize));
  optimizer<Adagrad>(m, "Adagrad", "Gradients over the root of the sum of their squares.",
                     TUFF_FIELD(Adagrad, lr), TUFF_FIELD(Adagrad, lr_decay),
                     TUFF_FIELD(Adagrad, weight_decay),
                     TUFF_FIELD(Adagrad, initial_accumulator_value), TUFF_FIELD(Adagrad, eps),
                     TUFF_FIELD(Adagrad, maximize));
  optimizer<Adadelta>(m, "Adadelta", "Gradients scaled to the size of the last steps.",
                      TUFF_FIELD(Adadelta, lr), TUFF_FIELD(Adadelta, rho),
                      TUFF_FIELD(Adadelta, eps), TUFF_FIELD(Adadelta, weight_decay),
                      TUFF_FIELD(Adadelta, maximize));
  optimizer<ASGD>(m, "ASGD", "Gradient descent with a mean of the parameters.",
                  TUFF_FIELD(ASGD, lr), TUFF_FIELD(ASGD, lambd), TUFF_FIELD(ASGD, alpha),
                  TUFF_FIELD(ASGD, t0), TUFF_FIELD(ASGD, weight_decay),
                  TUFF_FIELD(ASGD, maximize));
  optimizer<Adafactor>(m, "Adafactor", "Second moments of matrices by rows and columns alone.",
                       TUFF_FIELD(Adafactor, lr), TUFF_FIELD(Adafactor, beta2_decay),
                       TUFF_FIELD(Adafactor, eps1), TUFF_FIELD(Adafactor, eps2),
                       TUFF_FIELD(Adafactor, d), TUFF_FIELD(Adafactor, weight_decay),
                       TUFF_FIELD(Adafactor, maximize));
  optimizer<LARS>(m, "LARS", "SGD whose gradients are scaled in every tensor to its norm.",
                  TUFF_FIELD(LARS, lr), TUFF_FIELD(LARS, momentum),
                  TUFF_FIELD(LARS, weight_decay), TUFF_FIELD(LARS, nesterov),
                  TUFF_FIELD(LARS, trust), TUFF_FIELD(LARS, eps), TUFF_FIELD(LARS, maximize));
  optimizer<Muon>(m, "Muon", "The momentum of matrices, made orthogonal.", TUFF_FIELD(Muon, lr),
                  TUFF_FIELD(Muon, weight_decay), TUFF_FIELD(Muon, momentum),
                  TUFF_FIELD(Muon, nesterov), TUFF_FIELD(Muon, eps), TUFF_FIELD(Muon, ns_steps),
                  TUFF_FIELD(Muon, maximize));
  py::class_<LBFGS, Optimizer>(m, "LBFGS", "Quasi-Newton steps over all parameters together.")
      .def(py::init([](Tensors p, double lr, int64_t max_iter, int64_t history_size,
                       double tolerance_grad, double tolerance_change) {
             return std::make_unique<LBFGS>(
                 std::move(p), LBFGSOptions{lr, max_iter, history_size, tolerance_grad,
                                            tolerance_change});
           }),
           arg("params"), arg("lr") = 1.0, arg("max_iter") = 20, arg("history_size") = 100,
           arg("tolerance_grad") = 1e-7, arg("tolerance_change") = 1e-9)
      .def("step", &LBFGS::step, arg("closure"),
           "Steps by a function that computes the loss, calls its backward() and returns it.");
}

void bind_scaler(py::module_& m) {
  py::class_<GradScaler>(m, "GradScaler",
                         "Losses of float16 scaled up; steps whose gradients are not finite are "
                         "left out.")
      .def(py::init([](double init_scale, double growth_factor, double backoff_factor,
                       int64_t growth_interval, const std::string& device) {
             return GradScaler(GradScalerOptions{init_scale, growth_factor, backoff_factor,
                                                 growth_interval, device});
           }),
           arg("init_scale") = 65536.0, arg("growth_factor") = 2.0, arg("backoff_factor") = 0.5,
           arg("growth_interval") = 2000, arg("device") = "")
      .def("scale", &GradScaler::scale, arg("loss"), "The loss times the scale, in float32.")
      .def("unscale_", &GradScaler::unscale_, arg("optimizer"),
           "Divides gradients by the scale: for clipping before step(), once.")
      .def("step", &GradScaler::step, arg("optimizer"), arg("also") = Tensors{},
           "Optimizer.step(), unless a gradient is infinite or NaN, and the next scale.")
      .def("get_scale", &GradScaler::get_scale)
      .def(
          "state_dict", [](const GradScaler& s) { return dict_of(s.state_dict()); },
          "\"scale\" and \"_growth_tracker\".")
      .def(
          "load_state_dict",
          [](GradScaler& s, const py::dict& state) { s.load_state_dict(state_from(state)); },
          arg("state"));
}

void bind_averages(py::module_& m) {
  py::class_<AveragedParameters>(m, "AveragedParameters",
                                 "Averages of parameters over the steps of a training: "
                                 "exponential with a decay, else equal.")
      .def(py::init<Tensors, std::optional<double>>(), arg("parameters"),
           arg("decay") = py::none())
      .def("update", &AveragedParameters::update, "Takes the parameters in, after a step.")
      .def("swap", &AveragedParameters::swap, "Exchanges parameters and averages.")
      .def_property_readonly("averages", &AveragedParameters::averages)
      .def(
          "state_dict", [](const AveragedParameters& a) { return dict_of(a.state_dict()); },
          "\"n_averaged\" and the averages by number.")
      .def(
          "load_state_dict",
          [](AveragedParameters& a, const py::dict& state) {
            a.load_state_dict(state_from(state));
          },
          arg("state"));
}

}  // namespace

void bind_optim(py::module_& parent) {
  py::module_ m = parent.def_submodule("optim", "Optimizers, clipping and learning rates.");
  bind_optimizer(m);
  bind_moments(m);
  bind_others(m);
  bind_averages(m);
  bind_scaler(m);
  bind_schedules(m);
  m.def("clip_grad_norm_", &clip_grad_norm_, arg("parameters"), arg("max_norm"),
        arg("norm_type") = 2.0,
        "Scales gradients so that their norm together is at most max_norm.");
  m.def("clip_grad_value_", &clip_grad_value_, arg("parameters"), arg("clip_value"),
        "Clamps every gradient to -clip_value..clip_value.");
}

}  // namespace tuff::python
