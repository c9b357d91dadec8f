// `tuff serve`: OpenAI's API over HTTP for one model. Called by the command. Everything that is
// served is here; HTTP itself is http.h's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tuff/language.h>

#include "serve/http.h"
#include "serve/model_thread.h"

namespace tuff::serve {

struct ServerOptions {
  HttpOptions http = {};
  ModelThreadOptions model = {};
  std::string name;           // of the model, as requests call it
  std::string chat_template;  // instead of the model's own; empty: that one
  int64_t keep = -1, draft_tokens = 0;  // of all answers, as in language::GenerateOptions
  std::vector<std::string> keys = {};  // one of which requests have to bring; empty: none
};

// Whether only programs of this machine can reach a host that is listened on.
bool is_loopback(const std::string& host);

class Server {
 public:
  // Listens. InvalidArgument for a damaged template; IoError where it cannot listen.
  Server(language::Model model, const ServerOptions& options);
  ~Server();
  int port() const;
  // Until the first answer waits for no compilation, or the time is up; nothing then.
  std::optional<WarmUp> wait_until_warm(std::chrono::milliseconds most);
  // Takes nothing more, waits so long for what runs, and ends what is left.
  void shut_down(std::chrono::milliseconds most);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::serve
