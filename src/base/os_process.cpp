// os.h: child processes, interrupts and what this process is.
#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/os.h"
#include "base/os_descriptor.h"
#include "base/os_fork.h"
#include "base/os_fork_server.h"
#include "base/os_fork_server_request.h"

extern char** environ;

namespace tuff::os {
namespace {

constexpr size_t kErrorTail = 4000;

// What a child needs between vfork and exec, made before: it shares this process's memory.
struct Image {
  std::vector<std::string> argv, environment;
  std::vector<char*> argv_pointers, environment_pointers;
  bool replaces = false;  // what this process's environment has

  Image(const std::vector<std::string>& arguments, const Environment& added) : argv(arguments) {
    for (char** e = environ; *e; e++) {
      const std::string entry = *e;
      bool replaced = false;
      for (const auto& [name, value] : added) replaced |= entry.starts_with(name + "=");
      if (!replaced) environment.push_back(entry);
      replaces |= replaced;
    }
    for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
    for (std::string& s : argv) argv_pointers.push_back(s.data());
    for (std::string& s : environment) environment_pointers.push_back(s.data());
    argv_pointers.push_back(nullptr);
    environment_pointers.push_back(nullptr);
  }
};

// This process's end and the child's. Sockets, as a write to a closed pipe would end this process.
struct Channel {
  Descriptor own, child;
  Channel() {
    std::array<int, 2> fds;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
      fail<IoError>("cannot make a socket pair: {}", std::strerror(errno));
    own = Descriptor(fds[0]);
    child = Descriptor(fds[1]);
    ::fcntl(own.get(), F_SETFL, ::fcntl(own.get(), F_GETFL) | O_NONBLOCK);
  }
};

// In the child. Where the program cannot be run its errno goes to `failed`, which exec closes.
[[noreturn]] void become(Image& image, const std::array<int, 3>& streams, int failed,
                         pid_t parent) {
  for (int fd = 0; fd < 3; fd++) ::dup2(streams[size_t(fd)], fd);
  for (int s = 1; s < NSIG; s++) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  ::execvpe(image.argv_pointers[0], image.argv_pointers.data(), image.environment_pointers.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(failed, &error, sizeof error);
  ::_exit(127);
}

// fork() would copy the tables of all pages that a process of large tensors has. No handler of this
// process may run in its child.
[[gnu::noinline]] pid_t start(Image& image, const std::array<int, 3>& streams, int failed) {
  sigset_t all, before;
  sigfillset(&all);
  const pid_t parent = ::getpid();
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(image, streams, failed, parent);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace

struct Process::State {
  State() = default;
  State(Descriptor i, Descriptor o, Descriptor e, Descriptor run_status)
      : status(std::move(run_status)), in(std::move(i)), out(std::move(o)), err(std::move(e)) {}

  pid_t pid = -1;
  Descriptor status;  // of a fork server's run, which is no child of this process
  Descriptor in, out, err;
  std::string to_send;
  size_t sent = 0;
  bool by_line = false, killed = false;
  ProcessResult result;  // `out` less the lines that were read

  void feed() {
    const ssize_t n = ::send(in.get(), to_send.data() + sent, to_send.size() - sent, MSG_NOSIGNAL);
    if (n > 0) sent += size_t(n);
    if (sent == to_send.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.close();
  }
  static void drain(Descriptor& fd, std::string& into) {
    std::array<char, 16384> buffer;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n > 0)
      into.append(buffer.data(), size_t(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
      fd.close();
  }
  bool is_open() const { return in.is_open() || out.is_open() || err.is_open(); }
  // Moves what can be moved, waiting at most timeout_ms for something; -1: for ever.
  void pump(int timeout_ms) {
    // poll() skips negative descriptors, which closed ones have.
    pollfd fds[] = {{in.get(), POLLOUT, 0}, {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
    if (::poll(fds, 3, timeout_ms) <= 0) return;
    if (fds[0].revents) feed();
    if (fds[1].revents) drain(out, result.out);
    if (fds[2].revents) drain(err, result.err);
    if (by_line && result.err.size() > 2 * kErrorTail)
      result.err.erase(0, result.err.size() - kErrorTail);
  }
  // Until `done` says so; false if timeout_ns have passed before.
  template <class Done>
  bool pump_until(uint64_t timeout_ns, const Done& done) {
    const uint64_t deadline = monotonic_ns() + timeout_ns;
    while (!done()) {
      const uint64_t now = monotonic_ns();
      if (now >= deadline) return false;
      pump(int(std::min<uint64_t>((deadline - now) / 1000000 + 1, INT_MAX)));
    }
    return true;
  }
};

Process::Process(const std::vector<std::string>& argv, std::string stdin_text,
                 const Environment& environment)
    : state_(std::make_unique<State>()) {
  if (argv.empty() || argv[0].empty()) fail<InvalidArgument>("Process: argv names no program");
  State& s = *state_;
  Image image(argv, environment);
  Channel in, out, err, failed;
  s.pid = start(image, {in.child.get(), out.child.get(), err.child.get()}, failed.child.get());
  int error = s.pid < 0 ? errno : 0;
  failed.child.close();
  if (s.pid > 0 && ::recv(failed.own.get(), &error, sizeof error, 0) > 0) wait();
  if (error != 0) fail<IoError>("cannot start '{}': {}", argv[0], std::strerror(error));
  s.in = std::move(in.own);
  s.out = std::move(out.own);
  s.err = std::move(err.own);
  s.to_send = std::move(stdin_text);
  s.feed();  // so that it can begin, whichever child is waited for first
}

Process::Process(std::unique_ptr<State> state, std::string stdin_text)
    : state_(std::move(state)) {
  state_->to_send = std::move(stdin_text);
  state_->feed();
}

Process::Process(Process&&) noexcept = default;
Process::~Process() {
  if (!state_) return;
  kill();
  wait();
}

bool Process::done_within(uint64_t timeout_ns) {
  return state_->pump_until(timeout_ns, [&] { return !state_->is_open(); });
}

std::optional<std::string> Process::read_line(uint64_t timeout_ns) {
  State& s = *state_;
  s.by_line = true;
  size_t end = std::string::npos;
  s.pump_until(timeout_ns, [&] {
    end = s.result.out.find('\n');
    return end != std::string::npos || !s.out.is_open();
  });
  if (end == std::string::npos) return std::nullopt;
  std::string line = s.result.out.substr(0, end);
  s.result.out.erase(0, end + 1);
  return line;
}

bool Process::at_end() const {
  return !state_->out.is_open() && state_->result.out.find('\n') == std::string::npos;
}

void Process::kill() {
  if (state_->pid > 0) ::kill(state_->pid, SIGKILL);
  state_->killed = true;
}

namespace {

int status_of_child(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

// As killed, where nobody tells it any more.
int status_of_run(const Descriptor& told) {
  int status = SIGKILL;
  while (::recv(told.get(), &status, sizeof status, MSG_WAITALL) < 0 && errno == EINTR) {}
  return status;
}

}  // namespace

const ProcessResult& Process::wait() {
  State& s = *state_;
  if (s.pid <= 0 && !s.status.is_open()) return s.result;
  // A grandchild may hold the channels of one that was killed: their end is not waited for.
  while (s.is_open() && !s.killed) s.pump(-1);
  if (s.killed) s.status.close();  // the server ends the run
  const int status = s.pid > 0           ? status_of_child(s.pid)
                     : s.status.is_open() ? status_of_run(s.status)
                                          : SIGKILL;
  s.pid = -1;
  s.status.close();
  s.result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return s.result;
}

std::string Process::error_tail() const {
  const std::string& all = state_->result.err;
  return all.substr(all.size() - std::min(all.size(), kErrorTail));
}

struct ForkServer::State {
  pid_t pid;
  Descriptor requests;  // closing it ends the server
  uint32_t forks;
};

ForkServer::ForkServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ForkServer::~ForkServer() {
  state_->requests.close();
  if (state_->forks == forks()) status_of_child(state_->pid);  // else it is the parent's
}

namespace {

bool is_elf(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 4> magic{};
  return file.is_open() && ::read(file.get(), magic.data(), magic.size()) == 4 &&
         std::memcmp(magic.data(), "\x7f" "ELF", 4) == 0;
}

}  // namespace

std::unique_ptr<ForkServer> ForkServer::start(const std::string& program,
                                              const std::string& library) {
  constexpr int kMostMs = 3'000;
  // A script would be the interpreter's, and may wait for its standard input.
  if (!is_elf(program)) return nullptr;
  Image image({program, kForkServerFlag}, {{"LD_PRELOAD", library}});
  if (image.replaces) return nullptr;  // what is preloaded is meant for the program
  Channel in, out, err, failed;
  const pid_t pid =
      os::start(image, {in.child.get(), out.child.get(), err.child.get()}, failed.child.get());
  if (pid < 0) return nullptr;
  in.child.close();
  out.child.close();
  err.child.close();
  std::unique_ptr<ForkServer> server(
      new ForkServer(std::make_unique<State>(State{pid, std::move(in.own), forks()})));
  std::array<char, sizeof kForkServerReady - 1> said{};
  pollfd ready{out.own.get(), POLLIN, 0};
  ::poll(&ready, 1, kMostMs);
  const ssize_t n = ::recv(out.own.get(), said.data(), said.size(), 0);
  if (n == ssize_t(said.size()) && std::memcmp(said.data(), kForkServerReady, said.size()) == 0)
    return server;
  ::kill(pid, SIGKILL);
  return nullptr;
}

std::optional<Process> ForkServer::run(const std::vector<std::string>& argv,
                                       std::string stdin_text) {
  if (state_->forks != forks()) return std::nullopt;
  std::string words;
  for (const std::string& a : argv) words += a + '\0';
  RequestHeader header{uint32_t(words.size()), uint32_t(argv.size())};
  Channel in, out, err, status;
  const std::array<int, 4> fds{in.child.get(), out.child.get(), err.child.get(),
                               status.child.get()};
  std::array<iovec, 2> parts{{{&header, sizeof header}, {words.data(), words.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(c), fds.data(), sizeof fds);
  const ssize_t sent = ::sendmsg(state_->requests.get(), &message, MSG_NOSIGNAL);
  if (sent != ssize_t(sizeof header + words.size())) return std::nullopt;
  ::fcntl(status.own.get(), F_SETFL, 0);  // wait() waits for it
  return Process(std::make_unique<Process::State>(std::move(in.own), std::move(out.own),
                                                  std::move(err.own), std::move(status.own)),
                 std::move(stdin_text));
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

namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may store it

void on_interrupt(int signal) {
  if (g_interrupted.exchange(true)) {  // the second one ends the process, as by default
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // drivers and libraries below need not expect EINTR
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void fail_writes_beyond_limits() { ::signal(SIGXFSZ, SIG_IGN); }

bool interrupted() { return g_interrupted.load(std::memory_order_relaxed); }

}  // namespace tuff::os
