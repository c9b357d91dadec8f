// `tuff serve`: a language model behind OpenAI's API, and a page to chat with it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <tuff/language.h>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/terminal.h"
#include "engine/device.h"
#include "serve/server.h"

namespace tuff::cli {
namespace {

struct ServeCommandOptions {
  ModelChoice model;
  std::string device, key_file, template_file, cache = "f16";
  serve::ServerOptions server;
  DraftChoice draft;
  int64_t max_body = 4, queue = 64, time_limit = 600, shutdown_time = 10;
  bool json = false, no_warm_up = false;
};

constexpr int64_t kConnectionsBeside = 32;  // for what does not wait for the model
constexpr std::chrono::milliseconds kLook{50};  // between looks at whether it is to end

std::vector<std::string> keys_of_file(const std::string& path) {
  std::vector<std::string> keys;
  std::string line;
  for (const char c : os::read_text(path) + "\n") {
    if (c != '\n' && c != '\r') {
      line += c;
    } else if (!line.empty()) {
      keys.push_back(std::exchange(line, {}));
    }
  }
  if (keys.empty()) fail<InvalidArgument>("{}: a file with a key on each line was wanted", path);
  return keys;
}

std::string name_of(const std::string& model) {
  const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  const std::filesystem::path last = path.has_filename() ? path.filename()
                                                         : path.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

serve::ServerOptions server_options(const ServeCommandOptions& o) {
  serve::ServerOptions s = o.server;
  if (s.name.empty()) s.name = name_of(o.model.path);
  if (!o.template_file.empty()) s.chat_template = os::read_text(o.template_file);
  if (!o.key_file.empty()) {
    for (std::string& key : keys_of_file(o.key_file)) s.keys.push_back(std::move(key));
  }
  if (std::ranges::find(s.keys, "") != s.keys.end())
    throw UsageError("--api-key is empty: a key was wanted");
  s.draft_tokens = o.draft.count();
  s.model.queue = size_t(o.queue);
  s.model.batch.cache = language::cache_type(o.cache);
  s.model.warm_up = !o.no_warm_up;
  s.model.time_limit = std::chrono::seconds(o.time_limit);
  s.http.body_bytes = size_t(o.max_body) << 20;
  s.http.connections = size_t(s.model.batch.sequences + o.queue + kConnectionsBeside);
  return s;
}

void tell(const ServeCommandOptions& o, const serve::ServerOptions& s, const std::string& device,
          int port, const serve::WarmUp& warm) {
  const bool ipv6 = s.http.host.find(':') != std::string::npos;
  const std::string url = fmt::format("http://{}{}{}:{}", ipv6 ? "[" : "", s.http.host,
                                      ipv6 ? "]" : "", port);
  if (!serve::is_loopback(s.http.host) && s.keys.empty())
    print_warning(fmt::format("whoever reaches {} may use the model: --api-key-file asks for a key",
                              url));
  if (o.json) {
    print_json({{"event", "listening"}, {"url", url}, {"host", s.http.host}, {"port", port},
                {"model", s.name}, {"device", device}, {"graphs", warm.graphs},
                {"warm_up_seconds", warm.seconds}});
    return;
  }
  if (warm.graphs > 0)
    fmt::print("Warm after {:.1f} s: {} graphs are captured.\n", warm.seconds, warm.graphs);
  const bool local = serve::is_loopback(s.http.host);
  fmt::print("{} on {}: {} ({}), OpenAI's API below /v1. Ctrl-C ends it.\n", printable(s.name),
             device, url, local ? "this machine alone" : "for the network");
  std::fflush(stdout);
}

int serve_model(const ServeCommandOptions& o) {
  os::catch_interrupts();
  const std::string device = engine::canonical_device(o.device);
  serve::ServerOptions s = server_options(o);
  s.model.batch.draft = open_draft(o.draft, device);
  serve::Server server(open_model(o.model, device), s);
  std::optional<serve::WarmUp> warm;
  while (!os::interrupted() && !warm) warm = server.wait_until_warm(kLook);
  if (warm) tell(o, s, device, server.port(), *warm);
  while (!os::interrupted()) std::this_thread::sleep_for(kLook);
  server.shut_down(std::chrono::seconds(o.shutdown_time));
  return kExitOk;
}

void add_limits(CLI::App& c, ServeCommandOptions& o) {
  language::BatchOptions& batch = o.server.model.batch;
  add_setting(c, "--context", batch.context, "Tokens of a prompt and its answer; 0: the model's, "
              "at most 4096", "N", CLI::NonNegativeNumber);
  add_setting(c, "--sequences", batch.sequences, "Answers that are written at once", "N",
              CLI::Range(int64_t(1), int64_t(1024)));
  add_setting(c, "--cache-tokens", batch.cache_tokens,
              "Tokens that the cache holds in all; 0: --sequences times --context", "N",
              CLI::NonNegativeNumber);
  add_cache_option(c, o.cache);
  add_setting(c, "--keep", o.server.keep,
              "Answers that outgrow the context go on, and the older half of what follows so many "
              "first tokens is forgotten; -1: they end",
              "N", CLI::Range(int64_t(-1), int64_t(1) << 30));
  add_setting(c, "--queue", o.queue, "Answers that may wait; more are refused (429)", "N",
              CLI::Range(int64_t(0), int64_t(4096)));
  add_setting(c, "--time-limit", o.time_limit, "Seconds that an answer may take, waiting included",
              "S", CLI::Range(int64_t(1), int64_t(1) << 30));
  add_setting(c, "--max-body", o.max_body, "MiB of a request at most", "N",
              CLI::Range(int64_t(1), int64_t(1024)));
  add_setting(c, "--shutdown-time", o.shutdown_time,
              "Seconds that running answers have to end after Ctrl-C or SIGTERM", "S",
              CLI::Range(int64_t(0), int64_t(1) << 30));
}

}  // namespace

void add_serve_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "serve", "A language model behind OpenAI's API, and a page to chat with it");
  auto o = std::make_shared<ServeCommandOptions>();
  add_model_choice(*c, o->model);
  add_setting(*c, "--host", o->server.http.host,
              "Address to listen on; 0.0.0.0: all of this machine, for the network", "ADDRESS");
  add_setting(*c, "--port", o->server.http.port, "0: any that is free", "N",
              CLI::Range(0, 65535));
  c->add_option("--name", o->server.name, "Of the model; default: its file's")->type_name("NAME");
  c->add_option("--api-key", o->server.keys,
                "That requests have to bring; may be repeated. Others may see it in lists of "
                "processes: --api-key-file")
      ->type_name("KEY");
  c->add_option("--api-key-file", o->key_file, "A file with such a key on each line")
      ->type_name("FILE");
  c->add_option("--chat-template", o->template_file, "Jinja, instead of the model's own")
      ->type_name("FILE");
  add_limits(*c, *o);
  add_draft_options(*c, o->draft);
  c->add_flag("--no-warm-up", o->no_warm_up,
              "Starts at once; the first answers wait until their kernels are compiled");
  add_device_option(*c, o->device);
  c->add_flag("--json", o->json, "The address as a JSON object");
  c->footer(
      "Examples:\n"
      "  tuff serve SmolLM2-135M-Instruct.Q4_1.gguf\n"
      "  tuff serve MODEL.gguf --host 0.0.0.0 --port 8000 --api-key-file keys.txt");
  c->callback([o, &chosen] { chosen = [o] { return serve_model(*o); }; });
}

}  // namespace tuff::cli
