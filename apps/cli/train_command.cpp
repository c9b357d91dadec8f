// `tuff train gpt|digits|copy`.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/training_command.h"
#include "models/checkpoint.h"
#include "models/copy_trainer.h"
#include "models/corpus.h"
#include "models/digits.h"
#include "models/digits_trainer.h"
#include "models/gpt_trainer.h"

namespace tuff::cli {
namespace {

struct GptOptions {
  RunOptions run;
  models::GptTraining training;
  std::vector<std::string> texts;
  std::optional<double> learning_rate;
  uint32_t sample = 400;
  double temperature = 0.8;
};

struct DigitsOptions {
  RunOptions run;
  models::DigitsTraining training;
  std::string idx;
  std::optional<uint32_t> steps;
  uint32_t epochs = 5;
};

struct CopyOptions {
  RunOptions run;
  models::CopyTraining training;
};

// ---- gpt

models::Corpus read_corpus(const GptOptions& o) {
  models::Corpus corpus = o.texts.empty() ? models::embedded_corpus() : models::load_corpus(o.texts);
  try {
    corpus.require_context(o.training.recipe.context);
  } catch (const InvalidArgument& e) {
    throw UsageError(fmt::format("--context {}: {}", o.training.recipe.context, e.what()));
  }
  return corpus;
}

void require_heads(uint32_t heads, uint32_t embed) {
  if (embed % heads != 0) {
    throw UsageError(fmt::format("--heads {} does not divide --embed {}", heads, embed));
  }
}

void print_sample(const GptOptions& o, const std::string& text) {
  if (o.run.json) {
    print_json({{"event", "sample"}, {"text", text}});
  } else {
    const Style style = Style::of_stdout();
    fmt::print("\n{}The model writes:{}\n{}\n", style.bold, style.plain, text);
  }
}

Json gpt_done(const GptOptions& o, const models::Corpus& corpus, const models::TrainingReport& report) {
  const models::GptRecipe& r = o.training.recipe;
  Json line = done_line("gpt", report);
  line.update({{"corpus", corpus.origin()},
               {"corpus_hash", corpus.hash_hex()},
               {"corpus_bytes", corpus.size_bytes()},
               {"vocabulary", corpus.vocabulary().size()},
               {"layers", r.layers},
               {"heads", r.heads},
               {"embed", r.embed},
               {"context", r.context},
               {"batch", r.batch},
               {"seed", r.seed},
               {"jit", o.training.jit}});
  return line;
}

int train_gpt(GptOptions o) {
  models::GptTraining& t = o.training;
  if (o.learning_rate) {
    t.optimizer.learning_rate = *o.learning_rate;
    t.optimizer.learning_rate_end = *o.learning_rate / 10;
  }
  take_resumed(t, o.run, models::kGptTask);
  require_heads(t.recipe.heads, t.recipe.embed);
  const models::Corpus corpus = read_corpus(o);
  const std::string curve = prepare(o.run, "tuff-gpt-loss.csv");
  models::GptTrainer trainer(t, corpus);
  TrainingDisplay display("gpt", t.recipe.steps, o.run.json);
  std::string written;
  run_training(trainer, display, [&] {
    if (o.sample && !os::interrupted()) written = trainer.sample(o.sample, o.temperature, display);
  });
  if (!written.empty()) print_sample(o, written);
  if (o.run.json) {
    print_json(gpt_done(o, corpus, trainer.report()));
  } else {
    print_summary(trainer.report());
    fmt::print("text: {} ({} bytes, {} characters, XXH64 {})\n", corpus.origin(),
               corpus.size_bytes(), corpus.vocabulary().size(), corpus.hash_hex());
  }
  return finish(o.run, curve, trainer.report());
}

void add_gpt(CLI::App& train, Action& chosen) {
  CLI::App* c =
      train.add_subcommand("gpt", "A character-level GPT on text, its own sources by default");
  auto o = std::make_shared<GptOptions>();
  models::GptRecipe& r = o->training.recipe;
  c->add_option("--text", o->texts, "Files and folders to learn, joined")->type_name("FILE|DIR");
  add_count<models::GptTraining>(*c, "steps", r.steps, "Training steps");
  add_count<models::GptTraining>(*c, "layers", r.layers, "Transformer blocks");
  add_count<models::GptTraining>(*c, "heads", r.heads, "Attention heads; must divide --embed");
  add_count<models::GptTraining>(*c, "embed", r.embed, "Width");
  add_count<models::GptTraining>(*c, "context", r.context, "Characters seen at once");
  add_count<models::GptTraining>(*c, "batch", r.batch, "Sequences per step");
  c->add_option("--lr", o->learning_rate,
                "Learning rate after warm-up; ends at a tenth of it (default 0.001)")
      ->check(in_range_of<models::GptTraining>("lr"))
      ->type_name("F");
  add_setting(*c, "--dropout", o->training.dropout, "Probability", "F",
              in_range_of<models::GptTraining>("dropout"));
  add_setting(*c, "--sample", o->sample, "Characters to write at the end; 0 for none", "N",
              CLI::Range(0u, 1'000'000u));
  add_setting(*c, "--temperature", o->temperature, "Of sampling", "F", between(0.01, 100.0));
  add_run_options(*c, o->run, o->training, r.seed);
  c->footer(
      "Examples:\n"
      "  tuff train gpt --text README.md src --steps 500\n"
      "  tuff train gpt --save gpt.safetensors --save-every 100\n"
      "  tuff train gpt --resume gpt.safetensors --steps 1000 --save gpt.safetensors");
  choose(c, o, train_gpt, chosen);
}

// ---- digits

struct DigitsResult {
  std::optional<models::ConfusionTable> table;
  std::optional<double> regression;
};

DigitsResult test_digits(const models::DigitsTrainer& trainer, const models::DigitsTraining& t,
                         const io::ImageSplit& images) {
  DigitsResult result;
  if (t.test_images == 0) return result;
  QuietObserver observer;
  result.table = trainer.test(observer);
  const double regression = models::softmax_regression_accuracy(t, images, observer);
  if (!os::interrupted()) result.regression = regression;
  return result;
}

void print_digits(const DigitsOptions& o, const io::ImageSplit& images, const DigitsResult& result,
                  const models::TrainingReport& report) {
  const double accuracy = result.table ? result.table->accuracy() : 0;
  if (o.run.json) {
    Json line = done_line("digits", report);
    if (result.table) line["accuracy"] = accuracy;
    if (result.regression) line["softmax_regression_accuracy"] = *result.regression;
    line.update({{"images", images.origin},
                 {"train_images", images.train.count},
                 {"test_images", images.test.count},
                 {"tested_images", result.table ? result.table->total() : 0},
                 {"seed", o.training.recipe.seed},
                 {"jit", o.training.jit}});
    print_json(line);
    return;
  }
  print_summary(report);
  if (!result.table) return;
  fmt::print("\n{}\n", result.table->format());
  fmt::print("test accuracy {:.2f} % of {} images ({})", 100 * accuracy, result.table->total(),
             images.origin);
  if (result.regression) {
    fmt::print("; a softmax regression on the same data: {:.2f} %", 100 * *result.regression);
  }
  fmt::print("\n");
}

int train_digits(DigitsOptions o) {
  models::DigitsTraining& t = o.training;
  if (o.steps) t.steps = *o.steps;
  take_resumed(t, o.run, models::kDigitsTask);
  const std::string curve = prepare(o.run, "tuff-digits-loss.csv");
  const io::ImageSplit images =
      o.idx.empty() ? models::draw_digits({.seed = t.recipe.seed}) : io::load_idx_folder(o.idx);
  if (t.steps == 0 || o.run.given.contains("epochs")) {
    const uint64_t by_epochs = uint64_t{o.epochs} * images.train.count / t.recipe.batch;
    t.steps = static_cast<uint32_t>(std::clamp<uint64_t>(by_epochs, 1, models::kMaxTrainingSteps));
  }
  models::DigitsTrainer trainer(t, images);
  TrainingDisplay display("digits", t.steps, o.run.json);
  DigitsResult result;
  run_training(trainer, display, [&] {
    if (!os::interrupted()) result = test_digits(trainer, t, images);
  });
  print_digits(o, images, result, trainer.report());
  return finish(o.run, curve, trainer.report());
}

void add_digits(CLI::App& train, Action& chosen) {
  CLI::App* c = train.add_subcommand(
      "digits", "A ConvNet on images of digits, drawn by tuff or MNIST's files");
  auto o = std::make_shared<DigitsOptions>();
  c->add_option("--idx", o->idx,
                "Folder with MNIST's four IDX files, plain or gzip; default: drawn digits")
      ->type_name("DIR");
  CLI::Option* epochs = add_setting(*c, "--epochs", o->epochs, "Passes over the training images",
                                    "N", CLI::Range(1u, 10'000u));
  c->add_option("--steps", o->steps, "Training steps instead of --epochs")
      ->check(CLI::Range(1u, models::kMaxTrainingSteps))
      ->excludes(epochs)
      ->type_name("N");
  add_count<models::DigitsTraining>(*c, "batch", o->training.recipe.batch, "Images per step");
  c->add_option("--test-images", o->training.test_images,
                "Test images that are asked at the end, the first ones; 0 for none (default: all)")
      ->type_name("N");
  add_setting(*c, "--lr", o->training.recipe.learning_rate, "Learning rate", "F",
              in_range_of<models::DigitsTraining>("lr"));
  add_run_options(*c, o->run, o->training, o->training.recipe.seed);
  c->footer(
      "Examples:\n"
      "  tuff train digits\n"
      "  tuff train digits --idx ~/mnist --epochs 2 --save digits.safetensors");
  choose(c, o, train_digits, chosen);
}

// ---- copy

int train_copy(CopyOptions o) {
  models::CopyTraining& t = o.training;
  take_resumed(t, o.run, models::kCopyTask);
  require_heads(t.heads, t.embed);
  const std::string curve = prepare(o.run, "tuff-copy-loss.csv");
  models::CopyTrainer trainer(t);
  TrainingDisplay display("copy", t.steps, o.run.json);
  std::optional<double> accuracy;
  run_training(trainer, display, [&] {
    const double share = trainer.accuracy(display);
    if (!os::interrupted()) accuracy = share;
  });
  if (o.run.json) {
    Json line = done_line("copy", trainer.report());
    if (accuracy) line["accuracy"] = *accuracy;
    line.update({{"mask_attention", t.mask_attention}, {"seed", t.seed}, {"jit", t.jit}});
    print_json(line);
  } else {
    print_summary(trainer.report());
    if (accuracy) {
      fmt::print("copied right: {:.2f} % of the tokens; by chance {:.2f} %\n", 100 * *accuracy,
                 100.0 / t.alphabet);
    }
  }
  return finish(o.run, curve, trainer.report());
}

void add_copy(CLI::App& train, Action& chosen) {
  CLI::App* c = train.add_subcommand(
      "copy", "A transformer that repeats 16 random tokens: a test of attention");
  auto o = std::make_shared<CopyOptions>();
  add_count<models::CopyTraining>(*c, "steps", o->training.steps, "Training steps");
  add_count<models::CopyTraining>(*c, "layers", o->training.layers, "Transformer blocks");
  add_count<models::CopyTraining>(*c, "heads", o->training.heads,
                              "Attention heads; must divide --embed");
  add_count<models::CopyTraining>(*c, "embed", o->training.embed, "Width");
  add_count<models::CopyTraining>(*c, "batch", o->training.batch, "Sequences per step");
  add_setting(*c, "--lr", o->training.learning_rate, "Learning rate after warm-up", "F",
              in_range_of<models::CopyTraining>("lr"));
  c->add_flag("--mask-attention", o->training.mask_attention,
              "No position sees another: the task cannot be learned");
  add_run_options(*c, o->run, o->training, o->training.seed);
  c->footer(
      "Examples:\n"
      "  tuff train copy --device CPU\n"
      "  tuff train copy --mask-attention");
  choose(c, o, train_copy, chosen);
}

}  // namespace

void add_train_command(CLI::App& app, Action& chosen) {
  CLI::App* train = app.add_subcommand("train", "Trains a model and says what it cost");
  train->require_subcommand(1);
  train->footer(
      "Examples:\n"
      "  tuff train gpt --steps 100\n"
      "  tuff train digits --device CPU");
  add_gpt(*train, chosen);
  add_digits(*train, chosen);
  add_copy(*train, chosen);
}

}  // namespace tuff::cli
