// `tuff finetune`: an adapter (LoRA) for a language model, or all of its weights, of texts or
// chats.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <tuff/language.h>

#include "base/check.h"
#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/terminal.h"
#include "cli/training_command.h"
#include "cli/write_progress.h"
#include "engine/device.h"
#include "language/save.h"
#include "models/finetune_trainer.h"

namespace tuff::cli {
namespace {

struct FinetuneOptions {
  RunOptions run;
  models::FinetuneTraining training;
  std::string model, chats, merged, type, schedule = models::kRateSchedules[0];
  std::vector<std::string> texts, targets;
  std::optional<uint32_t> steps, warmup;
  double epochs = 1, heldout = 0.05;
  bool force = false;
  // Where the model is written; "": it is not.
  std::string model_path() const {
    if (!training.full) return merged;
    const bool is_folder = os::is_directory(model);
    return is_folder ? run.folder : (std::filesystem::path(run.folder) / "model.gguf").string();
  }
};

constexpr double kFullRate = 2e-5;  // all weights at once learn by smaller steps

// The first rows are learned, the others asked.
struct Rows {
  models::PackedTexts learned;
  std::optional<models::PackedTexts> heldout;
};

std::vector<models::TrainingText> read(const FinetuneOptions& o, const Tokenizer& tokenizer) {
  return o.chats.empty() ? models::read_texts(tokenizer, o.texts)
                         : models::read_chats(tokenizer, o.chats);
}

// Chats are held out whole; of texts, which may be a single one, the end.
Rows rows_of(const FinetuneOptions& o, std::vector<models::TrainingText> texts) {
  const uint32_t length = o.training.context;
  const bool splits = o.chats.empty();
  std::vector<models::TrainingText> heldout;
  if (o.heldout > 0 && splits) {
    for (models::TrainingText& t : texts) {
      const size_t kept = size_t(double(t.tokens.size()) * (1 - o.heldout));
      heldout.push_back({{t.tokens.begin() + std::ptrdiff_t(kept), t.tokens.end()},
                         {t.learned.begin() + std::ptrdiff_t(kept), t.learned.end()}});
      t.tokens.resize(kept), t.learned.resize(kept);
    }
  } else if (o.heldout > 0) {
    const size_t kept = std::max<size_t>(size_t(double(texts.size()) * (1 - o.heldout)), 1);
    heldout.assign(texts.begin() + std::ptrdiff_t(kept), texts.end());
    texts.resize(kept);
  }
  Rows out{models::PackedTexts(texts, length, splits), {}};
  const bool any = std::ranges::any_of(heldout, [](const auto& t) { return t.tokens.size() > 1; });
  if (any) out.heldout.emplace(heldout, length, splits);
  return out;
}

void choose_steps(FinetuneOptions& o, size_t rows) {
  models::FinetuneTraining& t = o.training;
  const double per_step = double(t.batch) * double(t.accumulate);
  const double by_epochs = std::ceil(o.epochs * double(rows) / per_step);
  if (o.steps) {
    t.steps = *o.steps;
  } else if (t.checkpoints.resume.empty() || o.run.given.contains("epochs")) {
    t.steps = uint32_t(std::clamp(by_epochs, 1.0, double(models::kMaxTrainingSteps)));
  }
  if (t.checkpoints.resume.empty()) t.warmup_steps = o.warmup.value_or(t.steps / 30);
}

Json done(const FinetuneOptions& o, const std::string& kept, const Rows& rows,
          const models::TrainingReport& report) {
  Json line = done_line("finetune", report);
  line.update({{"model", o.model},
               {"adapter", o.training.full ? Json() : Json(kept)},
               {"written", o.model_path().empty() ? Json() : Json(o.model_path())},
               {"rows", rows.learned.rows()},
               {"context", rows.learned.length()},
               {"learned_tokens", rows.learned.learned_tokens()},
               {"left_out_tokens", rows.learned.left_out_tokens()},
               {"heldout_rows", rows.heldout ? rows.heldout->rows() : 0},
               {"rank", o.training.rank},
               {"batch", o.training.batch},
               {"accumulate", o.training.accumulate}});
  return line;
}

// Where it was kept. A training may have taken hours: where its folder takes no files another one
// does.
std::string save_adapter(const FinetuneOptions& o, const language::Adapter& adapter) {
  namespace fs = std::filesystem;
  try {
    adapter.save(o.run.folder, o.model);
    return o.run.folder;
  } catch (const IoError& e) {
    std::error_code ignored;
    for (const fs::path& place : {fs::temp_directory_path(ignored), fs::current_path(ignored)}) {
      std::string folder = (place / "tuff-adapter-kept").string();
      while (os::exists(folder)) folder += '+';
      try {
        adapter.save(folder, o.model);
      } catch (const IoError&) {
        fs::remove(folder, ignored);
        continue;
      }
      print_error(fmt::format("{}; the adapter is in {} instead: move it", e.what(), folder));
      return folder;
    }
    throw;
  }
}

// Also of a training that was interrupted, as far as it came. Where the adapter is.
std::string write_results(const FinetuneOptions& o, const models::FinetuneTrainer& trainer) {
  if (trainer.report().steps.empty()) return o.run.folder;
  const auto& adapter = trainer.adapter();
  const std::string kept = adapter ? save_adapter(o, *adapter) : o.run.folder;
  if (adapter && !o.run.json)
    fmt::print("adapter: {} (tuff chat {} --lora {})\n", kept, o.model, kept);
  const std::string to = o.model_path();
  if (to.empty()) return kept;
  WriteBar bar("write");
  const language::Quantized done =
      trainer.tuned().save(to, {.type = o.type, .overwrite = o.force, .progress = std::ref(bar)});
  bar.clear();
  if (!o.run.json) fmt::print("model: {}\n", written_text(to, done));
  return kept;
}

void take_full(FinetuneOptions& o) {
  models::FinetuneTraining& t = o.training;
  if (!t.full) return;
  for (const char* option : {"rank", "alpha", "target", "lora", "merged"})
    if (o.run.given.contains(option))
      throw UsageError(fmt::format("--{} is of adapters, --full trains none", option));
  if (o.run.folder.empty()) o.run.folder = "tuff-model";
  if (t.checkpoints.resume.empty() && !o.run.given.contains("lr")) t.learning_rate = kFullRate;
}

int finetune(FinetuneOptions o) {
  if (o.texts.empty() && o.chats.empty()) throw UsageError("--text or --chat is needed");
  models::FinetuneTraining& t = o.training;
  t.device = engine::canonical_device(t.device);
  if (!o.targets.empty()) t.targets = o.targets;
  t.schedule = uint32_t(std::ranges::find(models::kRateSchedules, o.schedule) -
                        std::begin(models::kRateSchedules));
  take_resumed(t, o.run, models::kFinetuneTask);
  take_full(o);
  if (o.run.folder.empty()) o.run.folder = "tuff-adapter";
  if (o.model_path().empty() && !o.type.empty())
    throw UsageError("--type is of what --merged or --full writes");
  if (!o.model_path().empty())
    language::require_savable(o.model, o.model_path(), {.type = o.type, .overwrite = o.force});
  const language::Model model = language::Model::open(o.model, {.device = t.device});
  const int64_t most = model.description().context;
  if (!o.run.given.contains("context")) t.context = uint32_t(std::min<int64_t>(t.context, most));
  if (int64_t(t.context) > most)
    throw UsageError(fmt::format("--context {}: the model was trained for {}", t.context, most));
  const Rows rows = rows_of(o, read(o, model.tokenizer()));
  choose_steps(o, rows.learned.rows());
  const std::string curve = prepare(o.run, "tuff-finetune-loss.csv");
  if (rows.learned.left_out_tokens() > 0)
    print_warning(fmt::format("{} tokens of chats that are longer than --context {} are left out",
                              rows.learned.left_out_tokens(), t.context));
  models::FinetuneTrainer trainer(t, model, rows.learned, rows.heldout ? &*rows.heldout : nullptr);
  TrainingDisplay display("finetune", t.steps, o.run.json);
  run_training(trainer, display, [] {});
  if (!o.run.json) print_summary(trainer.report());
  const std::string kept = write_results(o, trainer);
  if (o.run.json) print_json(done(o, kept, rows, trainer.report()));
  const int code = finish(o.run, curve, trainer.report());
  return kept == o.run.folder ? code : kExitFailed;
}

void add_texts(CLI::App& c, FinetuneOptions& o) {
  CLI::Option* texts = c.add_option("--text", o.texts, "Files and folders of text; each file is one")
                           ->type_name("FILE|DIR");
  c.add_option("--chat", o.chats,
               "A file with a chat a line, as JSON: {\"messages\": [{\"role\": \"user\", "
               "\"content\": ...}, ...]}; what the assistant says is learned")
      ->excludes(texts)
      ->type_name("FILE.jsonl");
  add_setting(c, "--heldout", o.heldout, "Part of the texts that is not learned but asked", "F",
              between(0, 0.9));
}

void add_matrices(CLI::App& c, FinetuneOptions& o) {
  using Training = models::FinetuneTraining;
  add_count<Training>(c, "rank", o.training.rank, "Of the adapter's matrices");
  add_setting(c, "--alpha", o.training.alpha, "What they add is multiplied by alpha / rank", "F",
              in_range_of<Training>("alpha"));
  c.add_option("--target", o.targets,
               "A linear map that gets matrices, in all layers, by transformers' name: q_proj, "
               "c_attn; may be repeated (default: all)")
      ->type_name("NAME");
  c.add_option("--lora", o.training.adapter, "Begins with this adapter instead of a new one")
      ->type_name("DIR");
}

void add_results(CLI::App& c, FinetuneOptions& o) {
  c.add_flag("--full", o.training.full,
             "Trains all weights, which have to be floats, and no adapter; --out then gets the "
             "model: model.gguf, or the files of a folder. Takes 16 bytes a weight; --lr is 2e-5");
  c.add_option("--merged", o.merged,
               "Writes the model with the adapter merged into it too: a GGUF file of one, a folder "
               "of a folder")
      ->type_name("PATH");
  add_type_option(c, o.type);
  c.add_flag("--force", o.force, "Writes a model over files that are there already");
}

void add_steps(CLI::App& c, FinetuneOptions& o) {
  using Training = models::FinetuneTraining;
  models::FinetuneTraining& t = o.training;
  CLI::Option* epochs = add_setting(c, "--epochs", o.epochs, "Passes over the rows", "F",
                                    between(0.001, 10'000));
  c.add_option("--steps", o.steps, "Training steps instead of --epochs")
      ->check(CLI::Range(1u, models::kMaxTrainingSteps))
      ->excludes(epochs)
      ->type_name("N");
  add_count<Training>(c, "context", t.context, "Tokens of a row, into which texts are packed");
  add_count<Training>(c, "batch", t.batch, "Rows at once");
  add_count<Training>(c, "accumulate", t.accumulate, "Batches to a step");
  add_setting(c, "--lr", t.learning_rate, "Learning rate after warm-up", "F",
              in_range_of<Training>("lr"));
  c.add_option("--warmup", o.warmup, "Steps until then (default: a thirtieth of all)")
      ->check(CLI::Range(0u, models::kMaxTrainingSteps))
      ->type_name("N");
  add_setting(c, "--schedule", o.schedule, "How the rate falls to 0 from there, or that it stays",
              "NAME", CLI::IsMember(std::vector<std::string>(std::begin(models::kRateSchedules),
                                                             std::end(models::kRateSchedules))));
  add_setting(c, "--weight-decay", t.weight_decay, "Decoupled, of the matrices", "F",
              in_range_of<Training>("weight-decay"));
  add_setting(c, "--max-norm", t.max_norm, "Gradients are scaled down to this norm; 0: never", "F",
              in_range_of<Training>("max-norm"));
  c.add_flag_callback(
      "--no-shuffle", [&t] { t.shuffle = false; }, "Rows in the order of the texts");
  c.add_flag("--checkpoint-layers", t.recompute,
             "Keeps what goes into layers alone and computes the rest again for gradients: less "
             "memory, a third more time");
}

}  // namespace

void add_finetune_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "finetune",
      "Trains an adapter (LoRA) for a language model, whose weights stay packed, or all weights");
  auto o = std::make_shared<FinetuneOptions>();
  c->add_option("model", o->model, "A GGUF file, or a folder of Hugging Face's")
      ->required()
      ->type_name("MODEL");
  add_texts(*c, *o);
  add_matrices(*c, *o);
  add_results(*c, *o);
  add_steps(*c, *o);
  add_run_options(*c, o->run, o->training, o->training.seed,
                  "Folder of the adapter, as PEFT keeps it, and of the loss curve (default: "
                  "tuff-adapter; with --full tuff-model)");
  c->footer(
      "Examples:\n"
      "  tuff finetune MODEL.gguf --text notes.txt --steps 100\n"
      "  tuff finetune MODEL.gguf --chat chats.jsonl --epochs 3 --out my-adapter --save run.safetensors\n"
      "  tuff chat MODEL.gguf --lora my-adapter\n"
      "  tuff finetune MODEL.gguf --text notes.txt --merged tuned.gguf --type q8_0\n"
      "  tuff finetune folder/ --full --text notes.txt --out tuned/");
  choose(c, o, finetune, chosen);
}

}  // namespace tuff::cli
