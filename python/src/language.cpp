// tuff.language: language models, what they read and what they write.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <tuff/adapter.h>
#include <tuff/grammar.h>
#include <tuff/language.h>

#include <filesystem>

#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Path = std::filesystem::path;
using language::Adapter;
using language::Answer;
using language::Batch;
using language::BatchStats;
using language::Description;
using language::Finish;
using language::GenerateOptions;
using language::Model;
using language::Sampler;
using language::Sampling;
using language::Sequence;
using language::TokenChoice;
using language::TokenLogprobs;
using Tokens = std::vector<int32_t>;

void bind_description(py::module_& m) {
  py::class_<Description>(m, "Description", "What a model is, nothing of which is run.")
      .def_property_readonly("name", [](const Description& d) {
        return py::reinterpret_steal<py::str>(
            PyUnicode_DecodeUTF8(d.name.data(), py::ssize_t(d.name.size()), "replace"));
      })
      .def_readonly("architecture", &Description::architecture, "\"llama\", \"qwen2\", \"gemma3\".")
      .def_readonly("layers", &Description::layers)
      .def_readonly("width", &Description::width)
      .def_readonly("heads", &Description::heads)
      .def_readonly("kv_heads", &Description::kv_heads)
      .def_readonly("vocabulary", &Description::vocabulary)
      .def_readonly("context", &Description::context, "Positions that it was trained for.")
      .def_readonly("parameters", &Description::parameters, "Elements of all weights.")
      .def_readonly("weight_bytes", &Description::weight_bytes, "As they are stored.")
      .def_readonly("encodes", &Description::encodes, "embed() alone takes it.");
}

void bind_model(py::module_& m) {
  py::class_<Model>(m, "Model", "A model with its tokenizer. Copies share.")
      .def_static(
          "open",
          [](const Path& path, const std::string& device) {
            const Unlocked others;
            return Model::open(path.string(), {.device = device});
          },
          arg("path"), arg("device") = "",
          "A GGUF file; its weights stay in the file's blocks and are read when they are used.")
      .def("description", &Model::description)
      .def("tokenizer", &Model::tokenizer)
      .def_property_readonly("device", &Model::device, "\"\" is the default device.")
      .def(
          "__call__",
          [](const Model& model, const Tensor& tokens, const std::optional<Tensor>& texts,
             const std::optional<Tensor>& positions, bool checkpoints) {
            return model(tokens, {.texts = texts.value_or(Tensor()),
                                  .positions = positions.value_or(Tensor()),
                                  .checkpoints = checkpoints});
          },
          arg("tokens"), arg("texts") = py::none(), arg("positions") = py::none(),
          arg("checkpoints") = false,
          "(tokens) of integers -> (tokens, vocabulary): logits, without a cache; (texts, tokens) of "
          "several. texts, positions: of tokens of several texts behind each other in a row.")
      .def(
          "cross_entropy",
          [](const Model& model, const Tensor& tokens, const Tensor& targets, int64_t ignore_index,
             Reduction reduction, const std::optional<Tensor>& texts,
             const std::optional<Tensor>& positions, bool checkpoints) {
            return model.cross_entropy(tokens, targets, ignore_index, reduction,
                                       {.texts = texts.value_or(Tensor()),
                                        .positions = positions.value_or(Tensor()),
                                        .checkpoints = checkpoints});
          },
          arg("tokens"), arg("targets"), arg("ignore_index") = -100,
          arg("reduction") = Reduction::Mean, arg("texts") = py::none(),
          arg("positions") = py::none(), arg("checkpoints") = false,
          "That of the logits with targets in the tokens' shape, without memory for all logits.")
      .def("with_adapter", &Model::with_adapter, arg("adapter"),
           "The same model with what an adapter adds to its linear maps.")
      .def(
          "parameters", [](const Model& model) { return dict_of(model.parameters()); },
          "Copies of all weights, float32, by the names that GGUF files have for them; they require "
          "gradients. Packed blocks are not trained.")
      .def(
          "with_parameters",
          [](const Model& model, const py::dict& parameters) {
            return model.with_parameters(state_from(parameters));
          },
          arg("parameters"), "The same model with these in place of some or all of its weights.")
      .def(
          "save",
          [](const Model& model, const Path& to, const std::string& type, bool overwrite) {
            const Unlocked others;
            return model.save(to.string(), {.type = type, .overwrite = overwrite});
          },
          arg("to"), arg("type") = "", arg("overwrite") = false,
          "Writes the model as it is now, in the format that it was opened from, with an adapter "
          "merged in; what has not changed is copied. type: of weights that have changed (as "
          "quantize() has it); default: as each was.");
}

void bind_adapter(py::module_& m) {
  static const language::LoraOptions usual;  // no targets: all
  py::class_<Adapter>(m, "Adapter", "Low-rank matrices beside a model's linear maps (LoRA).")
      .def_static(
          "create",
          [](const Model& model, int64_t rank, double alpha,
             const std::optional<std::vector<std::string>>& targets, uint64_t seed) {
            return Adapter::create(model, {rank, alpha, targets.value_or(usual.targets), seed});
          },
          arg("model"), arg("rank") = usual.rank, arg("alpha") = usual.alpha,
          arg("targets") = py::none(), arg("seed") = 0,
          "A new one, which changes nothing yet; of all linear maps if no targets are named.")
      .def_static(
          "open",
          [](const Path& folder, const Model& model) {
            return Adapter::open(folder.string(), model);
          },
          arg("folder"), arg("model"), "A folder as PEFT writes it.")
      .def(
          "save",
          [](const Adapter& a, const Path& folder, const std::string& base) {
            a.save(folder.string(), base);
          },
          arg("folder"), arg("base") = "", "As open() and PEFT read it.")
      .def("parameters", [](const Adapter& a) { return dict_of(a.parameters()); },
           "By PEFT's names; they require gradients.")
      .def_property_readonly("rank", [](const Adapter& a) { return a.options().rank; })
      .def_property_readonly("alpha", [](const Adapter& a) { return a.options().alpha; })
      .def_property_readonly("targets", [](const Adapter& a) { return a.options().targets; });
}

void bind_sequence(py::module_& m) {
  py::class_<Sequence>(m, "Sequence",
                       "A text that a model reads; keys and values of what was read are kept.")
      .def(py::init([](const Model& model, int64_t context, const std::string& cache) {
             const Unlocked others;
             return Sequence(model, {.context = context, .cache = language::cache_type(cache)});
           }),
           arg("model"), arg("context") = 0, arg("cache") = "f16",
           "context: tokens that fit; 0: the model's, at most 4096; cache: how keys and values are "
           "kept, \"f16\", \"bf16\", \"f32\" or \"q8_0\".")
      .def(
          "read",
          [](Sequence& s, const Tokens& tokens) {
            const auto logits = [&] {
              const Unlocked others;
              return s.read(tokens);
            }();
            return Tensor::from(std::vector<float>(logits.begin(), logits.end()),
                                {int64_t(logits.size())}, {.device = "CPU"});
          },
          arg("tokens"), "The logits behind the last of them, which follow what was read before.")
      .def(
          "read_each",
          [](Sequence& s, const Tokens& tokens) {
            const auto logits = [&] {
              const Unlocked others;
              return s.read_each(tokens);
            }();
            return Tensor::from(std::vector<float>(logits.begin(), logits.end()),
                                {int64_t(tokens.size()), s.model().description().vocabulary},
                                {.device = "CPU"});
          },
          arg("tokens"), "The same: (tokens, vocabulary), the logits behind each of them.")
      .def("tokens", [](const Sequence& s) { return Tokens(s.tokens().begin(), s.tokens().end()); })
      .def("truncate", &Sequence::truncate, arg("count"), "Forgets all but the first tokens.")
      .def("shift", &Sequence::shift, arg("keep"), arg("drop"),
           "Forgets `drop` tokens behind the first `keep`; what follows moves up.")
      .def("context", &Sequence::context)
      .def("model", &Sequence::model)
      .def("stats", &Sequence::stats, "Of the graph that reads single tokens.");
}

void bind_sampling(py::module_& m) {
  const Sampling usual;
  py::class_<Sampling>(m, "Sampling", "How the next token is drawn.")
      .def(py::init([](double temperature, int64_t top_k, double top_p, double min_p,
                       double typical_p, double repeat_penalty, double presence_penalty, double frequency_penalty,
                       int64_t penalty_tokens, const std::map<int32_t, double>& bias,
                       uint64_t seed) {
             return Sampling{.temperature = temperature,
                             .top_k = top_k,
                             .top_p = top_p,
                             .min_p = min_p,
                             .typical_p = typical_p,
                             .repeat_penalty = repeat_penalty,
                             .presence_penalty = presence_penalty,
                             .frequency_penalty = frequency_penalty,
                             .penalty_tokens = penalty_tokens,
                             .bias = {bias.begin(), bias.end()},
                             .seed = seed};
           }),
           arg("temperature") = usual.temperature, arg("top_k") = usual.top_k,
           arg("top_p") = usual.top_p, arg("min_p") = usual.min_p,
           arg("typical_p") = usual.typical_p,
           arg("repeat_penalty") = usual.repeat_penalty,
           arg("presence_penalty") = usual.presence_penalty,
           arg("frequency_penalty") = usual.frequency_penalty,
           arg("penalty_tokens") = usual.penalty_tokens,
           arg("bias") = std::map<int32_t, double>{}, arg("seed") = usual.seed,
           "temperature: 0 takes the most likely token; top_k: 0 is all of them; bias: what is "
           "added to the logits of tokens.")
      .def_readonly("temperature", &Sampling::temperature)
      .def_readonly("top_k", &Sampling::top_k)
      .def_readonly("top_p", &Sampling::top_p)
      .def_readonly("typical_p", &Sampling::typical_p,
                    "Of the tokens that surprise about as much as is to be expected; 1: all.")
      .def_readonly("min_p", &Sampling::min_p, "Of the most likely one's probability.")
      .def_readonly("repeat_penalty", &Sampling::repeat_penalty)
      .def_readonly("presence_penalty", &Sampling::presence_penalty)
      .def_readonly("frequency_penalty", &Sampling::frequency_penalty)
      .def_readonly("penalty_tokens", &Sampling::penalty_tokens)
      .def_property_readonly("bias",
                             [](const Sampling& s) {
                               return std::map<int32_t, double>(s.bias.begin(), s.bias.end());
                             })
      .def_readonly("seed", &Sampling::seed);
  py::class_<Sampler>(m, "Sampler", "Draws tokens; one seed gives one sequence of draws.")
      .def(py::init<const Sampling&>(), arg("sampling"))
      .def(
          "draw",
          [](Sampler& s, const std::vector<float>& logits, const Tokens& seen) {
            return s.draw(logits, seen);
          },
          arg("logits"), arg("seen") = Tokens{}, "seen: the text so far, for penalties.");
}

// A piece that Python keeps beyond the call.
struct Piece {
  std::string text;
  Tokens tokens;
  std::vector<TokenLogprobs> logprobs;
};

// What a function of Python says of something; only what is false ends it.
template <class T>
bool goes_on(const py::object& function, const T& something) {
  const py::tuple arguments = py::make_tuple(something);
  const auto result =
      py::reinterpret_steal<py::object>(call_python(function.ptr(), arguments.ptr()));
  if (!result) throw py::error_already_set();
  return result.is_none() || result.cast<bool>();
}

GenerateOptions generate_options(int64_t tokens, const Sampling& sampling,
                                 const std::vector<std::string>& stop, const py::object& on_piece,
                                 int64_t logprobs, int64_t keep,
                                 const std::optional<Grammar>& grammar) {
  GenerateOptions options{.tokens = tokens,
                          .sampling = sampling,
                          .stop = stop,
                          .grammar = grammar.value_or(Grammar()),
                          .logprobs = logprobs,
                          .keep = keep};
  if (!on_piece.is_none())
    options.on_piece = [on_piece](const language::AnswerPiece& p) {
      return goes_on(on_piece, Piece{std::string(p.text), {p.tokens.begin(), p.tokens.end()},
                                     {p.logprobs.begin(), p.logprobs.end()}});
    };
  return options;
}

void bind_pieces(py::module_& m) {
  py::class_<TokenChoice>(m, "TokenChoice", "What a token was drawn from.")
      .def_readonly("token", &TokenChoice::token)
      .def_readonly("logprob", &TokenChoice::logprob, "Before sampling options.");
  py::class_<TokenLogprobs>(m, "TokenLogprobs", "A token, and those most likely in its place.")
      .def_readonly("chosen", &TokenLogprobs::chosen)
      .def_readonly("top", &TokenLogprobs::top, "The most likely one first.");
  py::class_<Piece>(m, "AnswerPiece", "Text that is certain, and the tokens that have come.")
      .def_readonly("text", &Piece::text)
      .def_readonly("tokens", &Piece::tokens)
      .def_readonly("logprobs", &Piece::logprobs, "If they were asked for.");
}

void bind_answers(py::module_& m) {
  py::class_<Answer>(m, "Answer", "A text that a model wrote, and the time that it took.")
      .def_readonly("text", &Answer::text)
      .def_readonly("tokens", &Answer::tokens, "Without the one that ended it.")
      .def_readonly("logprobs", &Answer::logprobs, "Of the tokens, if they were asked for.")
      .def_property_readonly(
          "finish",
          [](const Answer& a) {
            static constexpr const char* kNames[] = {"end", "stop", "length", "cancelled",
                                                     "failed"};
            return kNames[size_t(a.finish)];
          },
          "Why it ended: \"end\", \"stop\", \"length\", \"cancelled\", \"failed\".")
      .def_readonly("error", &Answer::error, "Why it failed.")
      .def_readonly("prompt_tokens", &Answer::prompt_tokens, "Those that were read.")
      .def_readonly("prompt_seconds", &Answer::prompt_seconds, "Until the first token.")
      .def_readonly("seconds", &Answer::seconds, "For those that follow it.");
  m.def(
      "generate",
      [](Sequence& sequence, const Tokens& prompt, int64_t tokens, const Sampling& sampling,
         const std::vector<std::string>& stop, const py::object& on_piece, int64_t logprobs,
         int64_t draft_tokens, Sequence* draft, int64_t keep,
         const std::optional<Grammar>& grammar) {
        GenerateOptions options =
            generate_options(tokens, sampling, stop, on_piece, logprobs, keep, grammar);
        options.draft_tokens = draft_tokens, options.draft = draft;
        return language::generate(sequence, prompt, options);
      },
      arg("sequence"), arg("prompt"), arg("tokens") = -1, arg("sampling") = Sampling{},
      arg("stop") = std::vector<std::string>{}, arg("on_piece") = py::none(),
      arg("logprobs") = -1, arg("draft_tokens") = 0, arg("draft") = py::none(),
      arg("keep") = -1, arg("grammar") = py::none(),
      "Reads the prompt and writes what follows. tokens: at most, -1: what the context holds; "
      "stop: texts that end the answer; on_piece: told of each piece of text, False ends it; "
      "logprobs: so many most likely tokens are told with each one; draft_tokens: so many that "
      "followed before are tried at once, which pays where the answer repeats its prompt; draft: a "
      "sequence of a smaller model with the same vocabulary, which proposes them; keep: an "
      "answer that outgrows the context goes on, of what follows so many first tokens the older "
      "half is forgotten; -1: it ends; grammar: what the answer is held to.");
}

void bind_batch_stats(py::module_& m) {
  py::class_<BatchStats>(m, "BatchStats", "What a Batch has done so far, and what it is at.")
      .def_readonly("waiting", &BatchStats::waiting)
      .def_readonly("running", &BatchStats::running)
      .def_readonly("calls", &BatchStats::calls, "Of the model.")
      .def_readonly("prompt_tokens", &BatchStats::prompt_tokens, "That were read.")
      .def_readonly("cached_tokens", &BatchStats::cached_tokens, "Of prompts, known already.")
      .def_readonly("tokens", &BatchStats::tokens, "That were written.")
      .def_readonly("draft_tokens", &BatchStats::draft_tokens, "That were tried beside others.")
      .def_readonly("accepted_tokens", &BatchStats::accepted_tokens,
                    "Those of them that were drawn.")
      .def_readonly("preempted", &BatchStats::preempted, "Answers that let others go first.")
      .def_readonly("pages", &BatchStats::pages, "Of the cache.")
      .def_readonly("used_pages", &BatchStats::used_pages, "That running answers hold.");
}

void bind_batch(py::module_& m) {
  bind_batch_stats(m);
  py::class_<Batch>(m, "Batch", "Answers that one model writes side by side.")
      .def(py::init([](const Model& model, int64_t sequences, int64_t context,
                       int64_t cache_tokens, const std::string& cache,
                       const std::optional<Model>& draft) {
             const Unlocked others;
             return Batch(model, {.sequences = sequences,
                                  .context = context,
                                  .cache_tokens = cache_tokens,
                                  .cache = language::cache_type(cache),
                                  .draft = draft});
           }),
           arg("model"), arg("sequences") = 8, arg("context") = 0, arg("cache_tokens") = 0,
           arg("cache") = "f16", arg("draft") = py::none(),
           "sequences: that one call reads at most; context: tokens of each, 0: the model's, at "
           "most 4096; cache_tokens: of all together, 0: sequences * context; cache: as a "
           "Sequence's; draft: a smaller model with the same vocabulary, which proposes the "
           "draft_tokens of answers.")
      .def(
          "add",
          [](Batch& b, const Tokens& prompt, int64_t tokens, const Sampling& sampling,
             const std::vector<std::string>& stop, const py::object& on_piece, int64_t logprobs,
             int64_t draft_tokens, int64_t keep, const std::optional<Grammar>& grammar) {
            GenerateOptions options =
                generate_options(tokens, sampling, stop, on_piece, logprobs, keep, grammar);
            options.draft_tokens = draft_tokens;
            return b.add(prompt, std::move(options));
          },
          arg("prompt"), arg("tokens") = -1, arg("sampling") = Sampling{},
          arg("stop") = std::vector<std::string>{}, arg("on_piece") = py::none(),
          arg("logprobs") = -1, arg("draft_tokens") = 0, arg("keep") = -1,
          arg("grammar") = py::none(), "Queues a prompt, with generate()'s options: the answer's id.")
      .def("cancel", &Batch::cancel, arg("id"), "Drops it, whether it waits or runs.")
      .def("step", &Batch::step, "One call of the model: (id, answer) of those that ended in it.")
      .def("idle", &Batch::idle, "Nothing waits or runs.")
      .def(
          "warm_up",
          [](Batch& b, const py::object& on_graph) {
            if (on_graph.is_none()) return b.warm_up();
            b.warm_up([&](size_t n) { return goes_on(on_graph, n); });
          },
          arg("on_graph") = py::none(),
          "Captures the graphs that answers run. on_graph: told of each one, False ends it.")
      .def("stats", &Batch::stats)
      .def("context", &Batch::context)
      .def("model", &Batch::model);
}

void bind_embed(py::module_& m) {
  m.def(
      "embed",
      [](const Model& model, const Tokens& tokens) {
        const auto vector = [&] {
          const Unlocked others;
          return language::embed(model, tokens);
        }();
        return Tensor::from(vector, {int64_t(vector.size())}, {.device = "CPU"});
      },
      arg("model"), arg("tokens"),
      "A text as a vector of length 1: the mean of what the last norm gives for each token.");
}

void bind_perplexity(py::module_& m) {
  py::class_<language::Perplexity>(m, "Perplexity", "How surprised a model is by a text.")
      .def_readonly("value", &language::Perplexity::value, "exp of the mean loss.")
      .def_readonly("error", &language::Perplexity::error, "Its standard error.")
      .def_readonly("tokens", &language::Perplexity::tokens, "That were predicted.");
  m.def(
      "perplexity",
      [](const Model& model, const Tokens& tokens, int64_t context) {
        return language::perplexity(model, tokens, {.context = context});
      },
      arg("model"), arg("tokens"), arg("context") = 512,
      "Of a text in pieces, of each of which the second half is predicted.");
}

void bind_quantize(py::module_& m) {
  using language::Quantized;
  py::class_<Quantized>(m, "Quantized", "What quantize() or Model.save() has written.")
      .def_readonly("bytes_before", &Quantized::bytes_before)
      .def_readonly("bytes", &Quantized::bytes, "Of all tensors.")
      .def_readonly("tensors", &Quantized::tensors, "How many are of each type.");
  m.def(
      "quantize",
      [](const Path& from, const Path& to, const std::string& type, const std::string& device,
         bool overwrite) {
        const Unlocked others;
        return language::quantize(from.string(), to.string(), type,
                                  {.device = device, .overwrite = overwrite});
      },
      arg("source"), arg("to"), arg("type"), arg("device") = "", arg("overwrite") = false,
      "Writes a GGUF file of another's metadata and tensors, with weights as type: \"q8_0\", "
      "\"q4_k\", \"f16\" and others.");
}

}  // namespace

void bind_language(py::module_& parent) {
  py::module_ m = parent.def_submodule("language", "Language models in files.");
  bind_description(m);
  bind_quantize(m);
  bind_model(m);
  bind_adapter(m);
  bind_sequence(m);
  bind_sampling(m);
  bind_pieces(m);
  bind_answers(m);
  bind_batch(m);
  bind_embed(m);
  bind_perplexity(m);
}

}  // namespace tuff::python
