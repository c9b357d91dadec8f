// ONNX models: loaded, described and run, and functions of tensors written as such. Called by
// users, `tuff run` and `tuff inspect`. Must never know of graphs or devices.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tuff/jit.h>
#include <tuff/module.h>
#include <tuff/tensor.h>

namespace tuff::onnx {

/// An input or output of a model.
struct ValueInfo {
  std::string name;
  std::string type;           ///< "FLOAT", "INT64", "sequence of FLOAT"
  /// Of its tensors; Void where tuff cannot compute with them. Elements that tuff has no dtype for
  /// are in a wider one, which holds all of their values: INT4 and INT2 in I8, UINT4 and UINT2 in
  /// U8, FLOAT4E2M1, FLOAT8E4M3FNUZ and FLOAT8E5M2FNUZ in F16, FLOAT8E8M0 in F32.
  DType dtype = DType::Void;
  bool is_sequence = false;  ///< of tensors of this dtype and shape
  bool is_optional = false;  ///< may be nothing; as an input it may be left out
  bool has_rank = false;
  std::vector<std::string> shape;  ///< "3", "batch", "?" where nothing is known
};

/// An operator that a model uses.
struct OperatorUse {
  std::string domain;  ///< "" is ai.onnx
  std::string name;
  int64_t version = 0;   ///< of the domain's operators, as the model imports it
  int64_t count = 0;     ///< nodes, those of inner graphs and functions too
  std::string missing;   ///< why it cannot be run; empty: it can
};

/// What a model is, without running anything of it.
struct Description {
  int64_t ir_version = 0;
  std::string producer;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<ValueInfo> inputs, outputs;  ///< inputs without those that have an initializer
  std::vector<OperatorUse> operators;      ///< sorted by domain and name
  uint64_t parameters = 0;                 ///< elements of all initializers and Constants
  /// What load() makes fewer operators of, and how often: ("batch norms in the layer before", 35).
  std::vector<std::pair<std::string, int64_t>> rewrites;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Values by name.
using Values = std::map<std::string, Tensor>;

/// What an input or output may be: nothing (an optional that is empty), a tensor, a sequence.
using Item = std::variant<std::monostate, Tensor, std::vector<Tensor>>;

/// Inputs or outputs by name, also of models that have sequences and optionals.
using Items = std::map<std::string, Item>;

/// How load() makes a model.
struct LoadOptions {
  std::string device;  ///< where the model runs; "" is the default device
  /// Whether what follows a layer is folded into its weights and bias, and quantized weights of
  /// convolutions are decoded: once, at the first call, of the contents that the file has. Outputs
  /// differ from those of the graph as written by rounding. A model whose parameters() have been
  /// asked for folds none of them: what is assigned to them is used, and gradients flow to them.
  bool optimize = true;
};

/// A model in memory: what it holds is read when it is first used. Copies share.
class Model {
 public:
  const Description& description() const;
  const std::string& device() const;  ///< where it runs; "" is the default device
  /// The initializers by name, which may be trained: what is assigned to them is used. Short
  /// integers, from which shapes are reckoned, and numbers that an operator wants as such (the
  /// scales of a Resize) are constants nevertheless. From then on the model, its copies and
  /// sessions run as LoadOptions::optimize says; ask before a Jit of your own captures a call.
  const Values& parameters() const;
  /// All outputs. InvalidArgument for an input that is missing, unknown, or of another dtype or
  /// shape than the model declares; Unsupported naming operator, version and node for what cannot
  /// be run. Nothing runs before an output is realized, but what decides shapes and branches, and
  /// what is folded.
  Values operator()(const Values& inputs) const;
  /// As the call, also for inputs and outputs that are sequences or optional, which the call
  /// refuses: Unsupported.
  Items run(const Items& inputs) const;

 private:
  friend Model load(const std::string& path, const LoadOptions& options);
  friend class Session;
  struct State;
  std::shared_ptr<const State> state_;
};

/// What a Session is told beside its model.
struct SessionOptions {
  /// Extents that may be others at every call, by the model's names for them ("batch"): the least
  /// and the most of each. One graph serves them all; of inputs whose extents vary otherwise each
  /// set of shapes has a graph of its own.
  std::map<std::string, std::pair<int64_t, int64_t>> dynamic = {};
  size_t graphs = 8;  ///< that are kept, those used last
};

/// A model whose calls are replayed: of inputs of the same shapes and dtypes the first call runs
/// it, the second captures, later ones patch addresses and submit, without the host's work on the
/// graph. Where integers of a short input (a shape, a rate, a switch) decide shapes or branches
/// there is a graph for each of their values; where others do nothing can be captured, and each
/// call runs the model. Calls from several threads wait for each other.
class Session {
 public:
  /// InvalidArgument: a dynamic extent that no input has, or bounds that are none. Unsupported: an
  /// input or output that is a sequence; such models are run by Model::run().
  explicit Session(Model model, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  const Model& model() const;
  /// As the model's call, but that outputs are realized; the call does not wait for them. An output
  /// that is held keeps its values. InvalidArgument also for an extent outside its bounds.
  Values operator()(const Values& inputs);
  /// Why the last call was none of a captured graph; "" if it was, or may be the next time.
  std::string why_not_captured() const;
  JitStats stats() const;  ///< of the graph used last

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads a model's structure. IoError as tuff::load(); Unsupported naming all operators and types
/// that are missing, each with its nodes.
Model load(const std::string& path, const LoadOptions& options = {});

/// Of any model, also of one that load() refuses.
Description describe(const std::string& path);

/// What save() is told beside a function and examples of its inputs.
struct SaveOptions {
  /// Of the model, in order; none: "x", or "x0", "x1" ..., and "y" likewise.
  std::vector<std::string> input_names = {}, output_names = {};
  /// Extents of the inputs that are a name in the model, of any number. The function sees them as a
  /// Jit's function does: as symbolic Sizes with these bounds.
  std::vector<DynamicAxis> dynamic = {};
  /// What the model calls tensors that the function computes with: a module's state_dict(). Those
  /// that are not listed are "constant", "constant_1" ...
  nn::StateDict parameters = {};
  /// From so many bytes of weights on they lie in a file of their own, PATH.data beside the model;
  /// 0: always. At most 2^31, more than which no model's own file can have.
  uint64_t external_from = uint64_t(1) << 30;
  /// Whether random numbers may be drawn (dropout in training mode, rand()): each draw is a
  /// RandomUniform, by which a runtime makes numbers of its own at every call. Otherwise a draw is
  /// refused, for it is mostly a module that is not in evaluation mode.
  bool draws = false;
};

/// Writes a function of tensors as an ONNX model (operators of version 18), which other programs
/// run: the function is called once, with tensors that have the dtypes and shapes of `inputs` and
/// no values, and what it builds is translated. In evaluation mode, if its modules are. Equal
/// functions give equal files. Products of matrices become MatMul or Einsum, convolutions Conv,
/// indexing Gather, orders TopK, loops RNN, LSTM, GRU or Scan; all else is element by element as
/// tuff computes it.
///
/// InvalidArgument for names and axes that no input or output has, and where the function reads
/// values of its inputs; Unsupported naming what it computes that a model cannot hold, and what to
/// do: draws of random numbers (unless options.draws), changes of tensors, tensors on several
/// devices, bitcasts. IoError as tuff::save(). Nothing is written then.
void save(const std::string& path, const Jit::Function& function, const std::vector<Tensor>& inputs,
          const SaveOptions& options = {});

}  // namespace tuff::onnx
