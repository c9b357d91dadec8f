// ForkServer: a program that is loaded once and forked for every run, where the time to load and
// link it is most of what a run takes. Called by compilers.cpp; the other side is
// os_fork_server_library.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/os.h"

namespace tuff::os {

class ForkServer {
 public:
  // `library` is that of the target tuff_fork_server. Null where the program does not take it: a
  // script, a program without dynamic linking, or one for another C library.
  static std::unique_ptr<ForkServer> start(const std::string& program, const std::string& library);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  // As Process(argv, stdin_text), but that it ends with this process, not with a thread. None once
  // the server has ended, and in a child of fork(). From one thread at a time.
  std::optional<Process> run(const std::vector<std::string>& argv, std::string stdin_text);

 private:
  struct State;
  explicit ForkServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuff::os
