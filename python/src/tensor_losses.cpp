// Losses.
#include <tuff/losses.h>

#include "module.h"

namespace tuff::python {

using py::arg;

namespace {

void bind_losses_of_classes(TensorClass& c) {
  c.def(
      "cross_entropy",
      [](const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t ignore_index,
         Reduction reduction, double label_smoothing) {
        return x.cross_entropy(target, given(weight), ignore_index, reduction, label_smoothing);
      },
      arg("target"), arg("weight") = py::none(), arg("ignore_index") = -100,
      arg("reduction") = Reduction::Mean, arg("label_smoothing") = 0.0,
      "-log softmax(logits)[target]; logits (N, C, ...) or (C).");
  c.def(
      "nll_loss",
      [](const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t ignore_index,
         Reduction reduction) {
        return x.nll_loss(target, given(weight), ignore_index, reduction);
      },
      arg("target"), arg("weight") = py::none(), arg("ignore_index") = -100,
      arg("reduction") = Reduction::Mean, "cross_entropy() of logarithms of probabilities.");
  c.def(
      "binary_cross_entropy_with_logits",
      [](const Tensor& x, const Tensor& target, const MaybeTensor& weight, Reduction reduction,
         const MaybeTensor& pos_weight) {
        return x.binary_cross_entropy_with_logits(target, given(weight), reduction,
                                                  given(pos_weight));
      },
      arg("target"), arg("weight") = py::none(), arg("reduction") = Reduction::Mean,
      arg("pos_weight") = py::none(), "Of logits and targets in 0..1.");
  c.def(
      "binary_cross_entropy",
      [](const Tensor& x, const Tensor& target, const MaybeTensor& weight, Reduction reduction) {
        return x.binary_cross_entropy(target, given(weight), reduction);
      },
      arg("target"), arg("weight") = py::none(), arg("reduction") = Reduction::Mean,
      "Of probabilities and targets in 0..1.");
  c.def("hinge_embedding_loss", &Tensor::hinge_embedding_loss, arg("target"), arg("margin") = 1.0,
        arg("reduction") = Reduction::Mean, "Targets 1 and -1: x, or max(0, margin - x).");
  c.def("soft_margin_loss", &Tensor::soft_margin_loss, arg("target"),
        arg("reduction") = Reduction::Mean, "log(1 + exp(-target x)) for targets 1 and -1.");
}

void bind_loss_of_products(TensorClass& c) {
  c.def_static(
      "linear_cross_entropy",
      [](const Tensor& input, const Tensor& linear_weight, const Tensor& target,
         const MaybeTensor& linear_bias, const MaybeTensor& weight, Reduction reduction,
         int64_t ignore_index, double label_smoothing, int64_t rows_at_once) {
        return linear_cross_entropy(input, linear_weight, target, given(linear_bias),
                                    given(weight), ignore_index, reduction, label_smoothing,
                                    rows_at_once);
      },
      arg("input"), arg("linear_weight"), arg("target"), py::kw_only(),
      arg("linear_bias") = py::none(), arg("weight") = py::none(),
      arg("reduction") = Reduction::Mean, arg("ignore_index") = -100,
      arg("label_smoothing") = 0.0, arg("rows_at_once") = 0,
      "cross_entropy() of input (N, in) times linear_weight (C, in), of which memory never holds "
      "all logits: those of rows_at_once rows, by default as many as take 256 MiB.");
}

void bind_losses_of_values(TensorClass& c) {
  c.def("mse_loss", &Tensor::mse_loss, arg("target"), arg("reduction") = Reduction::Mean,
        "Squared differences.");
  c.def("l1_loss", &Tensor::l1_loss, arg("target"), arg("reduction") = Reduction::Mean,
        "Absolute differences.");
  c.def("smooth_l1_loss", &Tensor::smooth_l1_loss, arg("target"),
        arg("reduction") = Reduction::Mean, arg("beta") = 1.0,
        "Squared differences below beta, absolute ones above.");
  c.def("huber_loss", &Tensor::huber_loss, arg("target"), arg("reduction") = Reduction::Mean,
        arg("delta") = 1.0, "smooth_l1_loss() times delta.");
  c.def("kl_div", &Tensor::kl_div, arg("target"), arg("reduction") = Reduction::Mean,
        arg("log_target") = false,
        "target (log target - x) for logarithms x of probabilities; \"batchmean\" is the "
        "divergence.");
  c.def("poisson_nll_loss", &Tensor::poisson_nll_loss, arg("target"), arg("log_input") = true,
        arg("full") = false, arg("eps") = 1e-8, arg("reduction") = Reduction::Mean,
        "Of counts of events at the rate exp(x), or x.");
  c.def("gaussian_nll_loss", &Tensor::gaussian_nll_loss, arg("target"), arg("variance"),
        arg("full") = false, arg("eps") = 1e-6, arg("reduction") = Reduction::Mean,
        "Of values around x with a variance.");
}

void bind_losses_of_pairs(TensorClass& c) {
  c.def("margin_ranking_loss", &Tensor::margin_ranking_loss, arg("other"), arg("target"),
        arg("margin") = 0.0, arg("reduction") = Reduction::Mean,
        "max(0, target (other - x) + margin)");
  c.def("cosine_embedding_loss", &Tensor::cosine_embedding_loss, arg("other"), arg("target"),
        arg("margin") = 0.0, arg("reduction") = Reduction::Mean,
        "1 - cos of rows for target 1, max(0, cos - margin) for -1.");
  c.def("triplet_margin_loss", &Tensor::triplet_margin_loss, arg("positive"), arg("negative"),
        arg("margin") = 1.0, arg("p") = 2.0, arg("eps") = 1e-6, arg("swap") = false,
        arg("reduction") = Reduction::Mean,
        "max(0, d(x, positive) - d(x, negative) + margin)");
}

void bind_ctc_loss(TensorClass& c) {
  // Lengths may be tensors or lists of numbers.
  using Lengths = std::variant<Tensor, std::vector<int64_t>, int64_t>;
  const auto tensor_of = [](const Lengths& given, const std::string& device) {
    if (const Tensor* t = std::get_if<Tensor>(&given)) return *t;
    const TensorOptions options{.device = device};
    if (const int64_t* n = std::get_if<int64_t>(&given))
      return Tensor::from(std::vector<int64_t>{*n}, {}, options);
    const auto& each = std::get<std::vector<int64_t>>(given);
    return Tensor::from(each, {int64_t(each.size())}, options);
  };
  c.def_static(
      "ctc_loss",
      [tensor_of](const Tensor& log_probs, const Tensor& targets, const Lengths& input_lengths,
                  const Lengths& target_lengths, int64_t blank, Reduction reduction,
                  bool zero_infinity) {
        const std::string device = log_probs.device();
        const Tensor of_targets = tensor_of(target_lengths, device);
        if (targets.dim() == 1 && log_probs.dim() == 3) wait_for(of_targets);
        return Tensor::ctc_loss(log_probs, targets, tensor_of(input_lengths, device), of_targets,
                                blank, reduction, zero_infinity);
      },
      arg("log_probs"), arg("targets"), arg("input_lengths"), arg("target_lengths"),
      arg("blank") = 0, arg("reduction") = Reduction::Mean, arg("zero_infinity") = false,
      "Connectionist temporal classification: log_probs (T, N, C), targets (N, S) or one behind "
      "the other, lengths (N).");
}

}  // namespace

void bind_losses(TensorClass& c) {
  bind_losses_of_classes(c);
  bind_loss_of_products(c);
  bind_losses_of_values(c);
  bind_losses_of_pairs(c);
  bind_ctc_loss(c);
}

}  // namespace tuff::python
