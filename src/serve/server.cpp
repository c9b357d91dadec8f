#include "serve/server.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <random>

#include "base/check.h"
#include "serve/fields.h"
#include "serve/page.h"
#include "serve/prompt.h"
#include "serve/request.h"
#include "serve/request_error.h"
#include "serve/response.h"
#include "text/base64.h"

namespace tuff::serve {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 200ms;         // between looks at whether who asked is gone
constexpr auto kSignOfLife = 15s;     // so long a stream is silent at most
constexpr int kClientGone = 499;      // nobody reads it: for the metrics
constexpr const char* kEvents = "text/event-stream";

struct Route {
  const char *method, *path;
  bool open;  // asked without a key
};
constexpr Route kRoutes[] = {{"GET", "/", true},
                             {"GET", "/health", true},
                             {"GET", "/metrics", false},
                             {"GET", "/v1/models", false},
                             {"POST", "/v1/chat/completions", false},
                             {"POST", "/v1/completions", false},
                             {"POST", "/v1/embeddings", false}};
constexpr std::string_view kOneModel = "/v1/models/";

// Takes as long for keys that begin alike as for others.
bool equal_keys(std::string_view a, std::string_view b) {
  uint8_t differs = a.size() != b.size();
  for (size_t i = 0; i < a.size(); i++) differs |= uint8_t(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return differs == 0;
}

HttpResponse error_response(const RequestError& e) {
  HttpResponse r{.status = e.status(), .body = error_body(e)};
  if (e.status() == 429 || e.status() == 503) r.headers.emplace_back("Retry-After", "1");
  if (e.status() == 401) r.headers.emplace_back("WWW-Authenticate", "Bearer");
  return r;
}

// A host of the header Host, without its port.
std::string_view host_of(std::string_view header) {
  const size_t end = header.starts_with('[') ? header.find(']') + 1 : header.rfind(':');
  return header.substr(0, std::min(end, header.size()));
}

std::string error_of_http(int status, size_t body_bytes) {
  if (status == 413)
    return error_body(RequestError(
        413, fmt::format("the body exceeds {} bytes: send less, or start the server with a larger "
                         "--max-body",
                         body_bytes)));
  if (status == 500) return error_body(RequestError(500, "an error of the server; please report"));
  return error_body(RequestError(status, "this is no request of HTTP, or a too large one"));
}

}  // namespace

bool is_loopback(const std::string& host) {
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

struct Server::State {
  State(language::Model m, const ServerOptions& o)
      : options(o),
        model(std::move(m)),
        prompts(model.tokenizer(),
                o.chat_template.empty() ? model.tokenizer().chat_template() : o.chat_template),
        thread(model, o.model, metrics),
        created(std::time(nullptr)) {}

  std::optional<HttpResponse> gate(const HttpRequest& request);
  void check_host(const HttpRequest& request) const;
  void check_key(const HttpRequest& request) const;
  HttpResponse answer(const HttpRequest& request, HttpPeer& peer);
  HttpResponse dispatch(const HttpRequest& request, HttpPeer& peer);
  HttpResponse models(std::string_view one) const;
  HttpResponse chat(const HttpRequest& request, HttpPeer& peer);
  HttpResponse complete(const HttpRequest& request, HttpPeer& peer);
  HttpResponse embeddings(const HttpRequest& request);
  HttpResponse write(const Generation& generation, std::vector<std::vector<int32_t>> prompts,
                     std::shared_ptr<AnswerFormat> format, HttpPeer& peer);
  void check_model(const std::string& name) const;
  void check_writer() const;
  ReplyHandle submit(const Generation& generation, std::vector<std::vector<int32_t>> prompts);
  ResponseHead head(const char* kind);

  const ServerOptions options;
  Metrics metrics;
  language::Model model;
  PromptMaker prompts;
  ModelThread thread;
  const int64_t created;
  std::atomic<bool> closing{false};
  std::atomic<uint64_t> answers{0};
  const uint64_t instance = std::random_device()();
  std::unique_ptr<HttpServer> http;  // last: its threads use the rest
};

namespace {

// Writes what comes of a reply, to a stream or as a whole.
class Writing {
 public:
  Writing(ReplyHandle reply, std::shared_ptr<AnswerFormat> format, Usage usage, size_t choices)
      : reply_(std::move(reply)),
        format_(std::move(format)),
        usage_(usage),
        choices_(choices),
        ended_(reply_->size()) {}

  // Calls said(choice) with the chunks that a stream has. RequestError for an answer that failed;
  // one of a status that nobody reads for who is gone.
  template <class Said>
  void run(HttpPeer& peer, const Said& said, const std::function<void()>& silent) {
    auto last = Reply::Clock::now();
    while (left_ > 0) {
      if (reply_->wait(kLook)) {
        for (size_t i = 0; i < ended_.size(); i++) take(i, said);
        last = Reply::Clock::now();
      } else if (Reply::Clock::now() - last > kSignOfLife) {
        silent();
        last = Reply::Clock::now();
      }
      if (left_ > 0 && peer.gone()) throw RequestError(kClientGone, "the client is gone");
    }
  }
  const Usage& usage() const { return usage_; }
  const AnswerFormat& format() const { return *format_; }

 private:
  template <class Said>
  void take(size_t i, const Said& said) {
    if (ended_[i]) return;
    const Piece piece = reply_->take(i);
    if (!piece.text.empty() || !piece.tokens.empty())
      for (const Json& choice : format_->add(i, piece)) said(choice);
    const Outcome* outcome = reply_->outcome(i);
    if (!outcome) return;
    if (outcome->status != 200) throw RequestError(outcome->status, outcome->error);
    for (const Json& choice : format_->finish(i, *outcome)) said(choice);
    usage_.completion += outcome->tokens;
    if (i % choices_ == 0) usage_.cached += outcome->cached_tokens;
    ended_[i] = true;
    left_--;
  }

  ReplyHandle reply_;
  std::shared_ptr<AnswerFormat> format_;
  Usage usage_;
  size_t choices_;  // of each prompt
  std::vector<bool> ended_;
  size_t left_ = ended_.size();
};

void stream_events(Writing& writing, bool include_usage, HttpPeer& peer) {
  const auto send = [&](const std::string& text) {
    if (!peer.write(text)) throw RequestError(kClientGone, "the client is gone");
  };
  try {
    writing.run(
        peer, [&](const Json& choice) { send(event_text(writing.format().chunk(choice))); },
        [&] { send(": the answer is on its way\n\n"); });
    if (include_usage) send(event_text(writing.format().usage_chunk(writing.usage())));
    send("data: [DONE]\n\n");
  } catch (const RequestError& e) {
    if (e.status() != kClientGone) peer.write("data: " + error_body(e) + "\n\n");
  }
}

}  // namespace

std::optional<HttpResponse> Server::State::gate(const HttpRequest& request) {
  try {
    check_host(request);
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    const bool one_model = request.path.starts_with(kOneModel);
    const std::string path = one_model ? "/v1/models" : request.path;
    const auto route = std::ranges::find(kRoutes, path, &Route::path);
    if (route == std::end(kRoutes))
      throw RequestError(404, fmt::format("there is no {}; there are /v1/models, "
                                          "/v1/chat/completions, /v1/completions, /v1/embeddings, "
                                          "/health, /metrics and the page at /",
                                          request.path));
    if (method != route->method)
      throw RequestError(405, fmt::format("{} {}: {} was wanted", request.method, request.path,
                                          route->method));
    if (!route->open) check_key(request);
    if (method == "POST" && !request.header("Content-Type").starts_with("application/json"))
      throw RequestError(415, fmt::format("Content-Type is \"{}\": application/json was wanted",
                                          request.header("Content-Type")));
    const std::string coding = request.header("Content-Encoding");
    if (!coding.empty() && coding != "identity")
      throw RequestError(415, fmt::format("Content-Encoding is {}: identity was wanted", coding));
    if (method == "POST" && closing) throw RequestError(503, "the server is shutting down");
    return {};
  } catch (const RequestError& e) {
    metrics.request("refused", e.status());
    return error_response(e);
  }
}

// A page of another site whose name leads here could ask in its user's name (DNS rebinding).
void Server::State::check_host(const HttpRequest& request) const {
  const std::string header = request.header("Host");
  const std::string_view host = host_of(header);
  if (header.empty() || !is_loopback(options.http.host) || host == options.http.host ||
      host == "[::1]" || is_loopback(std::string(host)))
    return;
  throw RequestError(403, fmt::format("Host is {}: this server listens on {} alone; start it with "
                                      "--host {} to be asked by that name",
                                      header, options.http.host, host));
}

void Server::State::check_key(const HttpRequest& request) const {
  if (options.keys.empty()) return;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string header = request.header("Authorization");
  bool known = false;
  if (header.starts_with(kScheme)) {
    const std::string_view key = std::string_view(header).substr(kScheme.size());
    for (const std::string& k : options.keys) known |= equal_keys(key, k);
  }
  if (!known)
    throw RequestError(401,
                       header.empty() ? "an API key is wanted: Authorization: Bearer KEY"
                                      : "the API key is none of the server's",
                       {}, "invalid_api_key");
}

HttpResponse Server::State::answer(const HttpRequest& request, HttpPeer& peer) {
  HttpResponse response;
  try {
    response = dispatch(request, peer);
  } catch (const RequestError& e) {
    response = error_response(e);
  } catch (const Unsupported& e) {
    response = error_response(RequestError(501, e.what()));
  } catch (const InvalidArgument& e) {
    response = error_response(RequestError(400, e.what()));
  } catch (const std::exception& e) {
    response = error_response(RequestError(500, e.what()));
  }
  const bool one_model = request.path.starts_with(kOneModel);
  metrics.request(one_model ? "/v1/models" : request.path, response.status);
  return response;
}

HttpResponse Server::State::dispatch(const HttpRequest& request, HttpPeer& peer) {
  const std::string& path = request.path;
  if (path == "/v1/chat/completions") return chat(request, peer);
  if (path == "/v1/completions") return complete(request, peer);
  if (path == "/v1/embeddings") return embeddings(request);
  if (path == "/metrics")
    return {.body = metrics.text(thread.stats()), .type = "text/plain; version=0.0.4"};
  if (path == "/health") {
    if (closing) throw RequestError(503, "the server is shutting down");
    if (!thread.wait_until_warm(0ms))
      throw RequestError(503, "the server is warming up: its graphs are compiled");
    return {.body = R"({"status":"ok"})"};
  }
  if (path == "/")
    return {.body = std::string(kPage),
            .type = "text/html; charset=utf-8",
            .headers = {{"Content-Security-Policy",
                         "default-src 'none'; script-src 'unsafe-inline'; style-src "
                         "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'"},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Cache-Control", "no-cache"}}};
  return models(path.starts_with(kOneModel) ? std::string_view(path).substr(kOneModel.size())
                                            : std::string_view());
}

HttpResponse Server::State::models(std::string_view one) const {
  const language::Description& d = model.description();
  const Json row = {{"id", options.name},
                    {"object", "model"},
                    {"created", created},
                    {"owned_by", "tuff"},
                    {"context_length", thread.context()},
                    {"architecture", d.architecture},
                    {"parameters", d.parameters}};
  if (one.empty()) return {.body = body_text({{"object", "list"}, {"data", Json::array({row})}})};
  check_model(std::string(one));
  return {.body = body_text(row)};
}

void Server::State::check_model(const std::string& name) const {
  if (name.empty() || name == options.name) return;
  throw RequestError(404,
                     fmt::format("there is no model {}; there is {}", shown(Json(name)),
                                 options.name),
                     "model", "model_not_found");
}

void Server::State::check_writer() const {
  const language::Description& d = model.description();
  if (d.encodes)
    throw RequestError(400, fmt::format("{} is an encoder ({}), which writes no texts: ask "
                                        "/v1/embeddings",
                                        options.name, d.architecture),
                       "model", "model_writes_no_texts");
}

ResponseHead Server::State::head(const char* kind) {
  return {fmt::format("{}-{:08x}-{}", kind, instance, ++answers), options.name,
          int64_t(std::time(nullptr))};
}

ReplyHandle Server::State::submit(const Generation& generation,
                                  std::vector<std::vector<int32_t>> prompts) {
  const size_t answers_wanted = prompts.size() * size_t(generation.choices);
  if (answers_wanted > thread.most_answers())
    refuse("n", "the request asks for {} answers: the server writes {} at once, waiting included",
           answers_wanted, thread.most_answers());
  std::vector<Prompt> wanted;
  for (const std::vector<int32_t>& tokens : prompts) {
    if (tokens.empty()) refuse("prompt", "the prompt has no token: a text was wanted");
    if (int64_t(tokens.size()) >= thread.context())
      throw RequestError(400,
                         fmt::format("the prompt has {} tokens: the context holds {}, of which one "
                                     "at least is the answer's; shorten it, or start the server "
                                     "with a longer --context",
                                     tokens.size(), thread.context()),
                         "messages", "context_length_exceeded");
    for (int64_t i = 0; i < generation.choices; i++) {
      wanted.push_back({tokens, generation.options});
      wanted.back().options.keep = options.keep;
      wanted.back().options.draft_tokens = options.draft_tokens;
      language::Sampling& s = wanted.back().options.sampling;
      s.seed = generation.seed == -1 ? std::random_device()() : uint64_t(generation.seed);
      s.seed += uint64_t(i) * 0x9e3779b9;  // choices differ
      language::Sampler check(s);          // InvalidArgument for options that make no sense
      for (const auto& [token, bias] : s.bias)
        if (size_t(token) >= model.tokenizer().size())
          refuse("logit_bias", "logit_bias has token {}: the vocabulary has {}", token,
                 model.tokenizer().size());
    }
  }
  return thread.submit(std::move(wanted));
}

HttpResponse Server::State::write(const Generation& generation,
                                  std::vector<std::vector<int32_t>> tokens,
                                  std::shared_ptr<AnswerFormat> format, HttpPeer& peer) {
  Usage usage;
  for (const std::vector<int32_t>& t : tokens) usage.prompt += t.size();
  ReplyHandle reply = submit(generation, std::move(tokens));
  auto writing = std::make_shared<Writing>(std::move(reply), std::move(format), usage,
                                           size_t(generation.choices));
  if (generation.stream) {
    const bool with_usage = generation.include_usage;
    return {.type = kEvents,
            .headers = {{"Cache-Control", "no-cache"}},
            .stream = [writing, with_usage](HttpPeer& to) {
              stream_events(*writing, with_usage, to);
            }};
  }
  writing->run(peer, [](const Json&) {}, [] {});
  return {.body = body_text(writing->format().whole(writing->usage()))};
}

HttpResponse Server::State::chat(const HttpRequest& request, HttpPeer& peer) {
  ChatRequest r = read_chat_request(request.body);
  check_model(r.model);
  check_writer();
  std::vector<int32_t> tokens = prompts.chat(r);
  if (!r.forced.is_null()) r.generation.options.grammar = prompts.call(r);
  return write(r.generation, {std::move(tokens)},
               chat_format(head("chatcmpl"), model.tokenizer(), size_t(r.generation.choices),
                           r.tools),
               peer);
}

HttpResponse Server::State::complete(const HttpRequest& request, HttpPeer& peer) {
  const CompletionRequest r = read_completion_request(request.body);
  check_model(r.model);
  check_writer();
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::string> echoed;
  for (const Input& input : r.prompts) {
    tokens.push_back(prompts.text(input, "prompt"));
    const std::string echo = r.echo ? model.tokenizer().decode(tokens.back()) : "";
    echoed.insert(echoed.end(), size_t(r.generation.choices), echo);
  }
  return write(r.generation, std::move(tokens),
               completion_format(head("cmpl"), model.tokenizer(), std::move(echoed)), peer);
}

HttpResponse Server::State::embeddings(const HttpRequest& request) {
  const EmbeddingRequest r = read_embedding_request(request.body);
  check_model(r.model);
  Json data = Json::array();
  size_t count = 0;
  for (const Input& input : r.inputs) {
    const std::vector<int32_t> tokens = prompts.text(input, "input");
    count += tokens.size();
    std::vector<float> vector;
    try {
      thread.run([&](const language::Model& m) { vector = language::embed(m, tokens); });
    } catch (const InvalidArgument& e) {
      refuse("input", "input[{}]: {}", data.size(), e.what());
    }
    const std::string_view bytes(reinterpret_cast<const char*>(vector.data()),
                                 vector.size() * sizeof(float));
    Json values = r.base64 ? Json(text::to_base64(bytes)) : Json(vector);
    data.push_back(
        {{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(values)}});
  }
  return {.body = body_text({{"object", "list"},
                             {"data", std::move(data)},
                             {"model", options.name},
                             {"usage", {{"prompt_tokens", count}, {"total_tokens", count}}}})};
}

Server::Server(language::Model model, const ServerOptions& options)
    : state_(new State(std::move(model), options)) {
  State* s = state_.get();
  if (options.keep >= s->thread.context())
    fail<InvalidArgument>("--keep {}: fewer tokens than the context of {} were wanted",
                          options.keep, s->thread.context());
  s->http = std::make_unique<HttpServer>(
      options.http,
      HttpHandlers{[s](const HttpRequest& r) { return s->gate(r); },
                   [s](const HttpRequest& r, HttpPeer& peer) { return s->answer(r, peer); },
                   [n = options.http.body_bytes](int status) { return error_of_http(status, n); }});
}

Server::~Server() {
  if (state_->http) shut_down({});
}

std::optional<WarmUp> Server::wait_until_warm(std::chrono::milliseconds most) {
  return state_->thread.wait_until_warm(most);
}

int Server::port() const { return state_->http->port(); }

void Server::shut_down(std::chrono::milliseconds most) {
  State& s = *state_;
  if (s.closing.exchange(true)) return;
  const auto until = Reply::Clock::now() + most;
  if (!s.thread.drain(most)) s.thread.end_all("the server is shutting down");
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - Reply::Clock::now());
  s.http->stop(std::max(left, std::chrono::milliseconds(1000)));
}

}  // namespace tuff::serve
