// A child process that is talked to while it runs: its output arrives line by line, it can be
// killed and asked how it ended. Called by the conformance suite, whose cases may crash or hang.
// Children that only compute a result are os.h's Process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tuff::os {

class Child {
 public:
  // Feeds stdin_text to the child, then closes its stdin. `environment` is added to this process's.
  // The child dies with this process. IoError if it cannot be started.
  Child(const std::vector<std::string>& argv, std::string stdin_text,
        const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~Child();  // kills and reaps
  Child(const Child&) = delete;

  // The next line without its end, waiting at most timeout_ns; none if none came or at_end().
  std::optional<std::string> read_line(uint64_t timeout_ns);
  bool at_end() const;  // the child has closed its output and every line has been read
  void kill();
  // Waits for the end: the exit code, 128 + the number of the signal that ended it otherwise.
  int wait();
  // The last few thousand characters that the child wrote to its standard error.
  std::string error_tail() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string own_program();            // path of the running executable
std::string signal_name(int signal);  // "SIGSEGV"
// No core file is written when this process crashes: a crash is a result.
void forbid_core_files();

}  // namespace tuff::os
