// Adapters: low-rank matrices beside a language model's linear maps (LoRA; Hu et al., 2021). Called
// by users and `tuff finetune`. Must never know how they are trained.
#pragma once

#include <string>
#include <vector>

#include <tuff/language.h>
#include <tuff/nn.h>

namespace tuff::language {

/// Which linear maps of each layer get matrices, and how large these are.
struct LoraOptions {
  int64_t rank = 16;
  double alpha = 32;  ///< what is added is multiplied by alpha / rank
  /// By the names of Hugging Face's models, or what these end in: "q_proj", "attn.c_proj". None: all
  /// that the model has.
  std::vector<std::string> targets = {};
  uint64_t seed = 0;  ///< of their first values
};

/// Two matrices for each of some linear maps: (rank, in) and (out, rank), of which a Model adds the
/// product. Of experts (experts, rank, in) and (experts, out, rank), in files one by one. Copies share.
class Adapter {
 public:
  /// One that changes nothing yet: the first matrix is drawn as a linear layer's weight is, the
  /// second one is 0. InvalidArgument for a rank below 1, and for a target that is none of
  /// the model's maps; Unsupported for encoders.
  static Adapter create(const Model& model, const LoraOptions& options = {});
  /// A folder as the library PEFT writes it: adapter_config.json and adapter_model.safetensors.
  /// IoError, and InvalidArgument or Unsupported naming what is missing, has another shape than the
  /// model's maps, or is a kind of adapter that tuff does not know.
  static Adapter open(const std::string& folder, const Model& model);
  /// As open() reads it and PEFT does; `base` is the name of the model that it belongs to. Files
  /// that are there are replaced. IoError.
  void save(const std::string& folder, const std::string& base = "") const;
  const LoraOptions& options() const { return options_; }
  /// By PEFT's names; they require gradients.
  const nn::StateDict& parameters() const { return parameters_; }

 private:
  friend class Model;
  Adapter(LoraOptions options, bool transposed, nn::StateDict parameters)
      : options_(std::move(options)), transposed_(transposed), parameters_(std::move(parameters)) {}
  LoraOptions options_;
  bool transposed_;  // the maps of Hugging Face's model: GPT-2's
  nn::StateDict parameters_;
};

}  // namespace tuff::language
