#include "base/os_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/os.h"

extern char** environ;

namespace tuff::os {
namespace {

constexpr size_t kErrorTail = 4000;

// What a child needs between fork and exec, made before the fork: no allocation happens there.
struct Image {
  std::vector<std::string> argv, environment;
  std::vector<char*> argv_pointers, environment_pointers;

  Image(const std::vector<std::string>& arguments,
        const std::vector<std::pair<std::string, std::string>>& added)
      : argv(arguments) {
    for (char** e = environ; *e; e++) {
      const std::string entry = *e;
      bool replaced = false;
      for (const auto& [name, value] : added) replaced |= entry.starts_with(name + "=");
      if (!replaced) environment.push_back(entry);
    }
    for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
    for (std::string& s : argv) argv_pointers.push_back(s.data());
    for (std::string& s : environment) environment_pointers.push_back(s.data());
    argv_pointers.push_back(nullptr);
    environment_pointers.push_back(nullptr);
  }
};

[[noreturn]] void become(Image& image, int in, int out, int err, pid_t parent) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int s : {SIGINT, SIGTERM, SIGPIPE}) ::signal(s, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  ::execve(image.argv_pointers[0], image.argv_pointers.data(), image.environment_pointers.data());
  ::_exit(127);
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

// {this process's end, the child's}. Sockets, as a write to a closed pipe would end this process.
std::array<int, 2> make_channel() {
  std::array<int, 2> fds;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    fail<IoError>("cannot make a socket pair: {}", std::strerror(errno));
  ::fcntl(fds[0], F_SETFL, ::fcntl(fds[0], F_GETFL) | O_NONBLOCK);
  return fds;
}

}  // namespace

struct Child::State {
  pid_t pid = -1;
  int in = -1, out = -1, err = -1;
  std::string to_send, pending, errors;
  size_t sent = 0;
  int exit_code = 0;

  ~State() {
    for (int* fd : {&in, &out, &err}) close_fd(*fd);
  }
  void feed() {
    const ssize_t n = ::send(in, to_send.data() + sent, to_send.size() - sent, MSG_NOSIGNAL);
    if (n > 0) sent += size_t(n);
    if (sent == to_send.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) close_fd(in);
  }
  static void drain(int& fd, std::string& into) {
    std::array<char, 16384> buffer;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n > 0)
      into.append(buffer.data(), size_t(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
      close_fd(fd);
  }
  // Moves what can be moved, waiting at most timeout_ms for something.
  void pump(int timeout_ms) {
    pollfd fds[] = {{in, POLLOUT, 0}, {out, POLLIN, 0}, {err, POLLIN, 0}};
    if (::poll(fds, 3, timeout_ms) <= 0) return;
    if (fds[0].revents) feed();
    if (fds[1].revents) drain(out, pending);
    if (fds[2].revents) drain(err, errors);
    if (errors.size() > 2 * kErrorTail) errors.erase(0, errors.size() - kErrorTail);
  }
};

Child::Child(const std::vector<std::string>& argv, std::string stdin_text,
             const std::vector<std::pair<std::string, std::string>>& environment)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  Image image(argv, environment);
  auto [in, child_in] = make_channel();
  s.in = in;
  auto [out, child_out] = make_channel();
  s.out = out;
  auto [err, child_err] = make_channel();
  s.err = err;
  s.to_send = std::move(stdin_text);
  const pid_t parent = ::getpid();
  s.pid = ::fork();
  if (s.pid == 0) become(image, child_in, child_out, child_err, parent);
  const int error = errno;
  for (int* fd : {&child_in, &child_out, &child_err}) close_fd(*fd);
  if (s.pid < 0) fail<IoError>("cannot start '{}': {}", argv.at(0), std::strerror(error));
  if (s.to_send.empty()) close_fd(s.in);
}

Child::~Child() {
  kill();
  wait();
}

std::optional<std::string> Child::read_line(uint64_t timeout_ns) {
  State& s = *state_;
  const uint64_t deadline = monotonic_ns() + timeout_ns;
  for (;;) {
    const size_t end = s.pending.find('\n');
    if (end != std::string::npos) {
      std::string line = s.pending.substr(0, end);
      s.pending.erase(0, end + 1);
      return line;
    }
    const uint64_t now = monotonic_ns();
    if (s.out < 0 || now >= deadline) return std::nullopt;
    s.pump(int((deadline - now) / 1000000 + 1));
  }
}

bool Child::at_end() const {
  return state_->out < 0 && state_->pending.find('\n') == std::string::npos;
}

void Child::kill() {
  if (state_->pid > 0) ::kill(state_->pid, SIGKILL);
}

int Child::wait() {
  State& s = *state_;
  if (s.pid <= 0) return s.exit_code;
  int status = 0;
  while (::waitpid(s.pid, &status, 0) < 0 && errno == EINTR) {}
  s.pid = -1;
  while (s.err >= 0) {  // what it said last
    const size_t before = s.errors.size();
    State::drain(s.err, s.errors);
    if (s.errors.size() == before) break;
  }
  s.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return s.exit_code;
}

std::string Child::error_tail() const {
  const std::string& all = state_->errors;
  return all.substr(all.size() - std::min(all.size(), kErrorTail));
}

std::string own_program() {
  std::array<char, 4096> path;
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n > 0 && size_t(n) < path.size()) return {path.data(), size_t(n)};
  // Without /proc, as in a bare root: the path that was given to execve.
  const auto* given = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  std::error_code error;
  const std::filesystem::path found =
      std::filesystem::canonical(given != nullptr ? given : "", error);
  if (error) fail<IoError>("cannot tell the path of the running program: /proc is not mounted");
  return found.string();
}

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation ? std::string("SIG") + abbreviation : fmt::format("signal {}", signal);
}

void forbid_core_files() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace tuff::os
