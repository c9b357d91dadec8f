// os.h: child processes and interrupts.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/os.h"

extern char** environ;

namespace tuff::os {
namespace {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) fail<IoError>("cannot make a pipe: {}", std::strerror(errno));
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

void set_nonblocking(const Descriptor& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// What posix_spawn needs; the child starts with default signals, whatever this process catches.
class SpawnSettings {
 public:
  SpawnSettings(int in, int out, int err) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

pid_t spawn(const std::vector<std::string>& argv, int in, int out, int err) {
  if (argv.empty() || argv[0].empty()) fail<InvalidArgument>("Process: argv names no program");
  std::vector<char*> pointers;
  for (const std::string& a : argv) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  SpawnSettings settings(in, out, err);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, pointers[0], &settings.actions, &settings.attributes,
                                   pointers.data(), environ);
  if (error != 0) fail<IoError>("cannot start '{}': {}", argv[0], std::strerror(error));
  return pid;
}

// Appends what can be read now; closes at the end.
void drain(Descriptor& fd, std::string& into) {
  std::array<char, 16384> buffer;
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n > 0)
    into.append(buffer.data(), size_t(n));
  else if (n == 0 || (errno != EINTR && errno != EAGAIN))
    fd.close();
}

// Writes what fits now; closes when all is written or the child no longer reads.
void feed(Descriptor& fd, const std::string& text, size_t& sent) {
  const ssize_t n = ::write(fd.get(), text.data() + sent, text.size() - sent);
  if (n > 0)
    sent += size_t(n);
  else if (n < 0 && errno != EINTR && errno != EAGAIN)
    fd.close();
  if (sent == text.size()) fd.close();
}

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGPIPE above all: feed() sees EPIPE instead
}

}  // namespace

struct Process::State {
  pid_t pid = -1;
  Descriptor in, out, err, stop_read, stop_write;
  std::string stdin_text;
  ProcessResult result;
  std::thread pump;  // so that several children run at once, whoever is waited for first
  std::atomic<uint32_t> pumped{0};

  void pump_pipes() {
    block_all_signals();
    size_t sent = 0;
    if (stdin_text.empty()) in.close();
    while (in.is_open() || out.is_open() || err.is_open()) {
      // poll() skips negative descriptors, which closed ones have.
      pollfd fds[] = {{stop_read.get(), POLLIN, 0},
                      {in.get(), POLLOUT, 0},
                      {out.get(), POLLIN, 0},
                      {err.get(), POLLIN, 0}};
      if (::poll(fds, 4, -1) < 0) continue;
      if (fds[0].revents) return;
      if (fds[1].revents) feed(in, stdin_text, sent);
      if (fds[2].revents) drain(out, result.out);
      if (fds[3].revents) drain(err, result.err);
    }
  }

  int reap() {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    pid = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

Process::Process(const std::vector<std::string>& argv, std::string stdin_text)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe(), stop = make_pipe();
  s.pid = spawn(argv, in.read.get(), out.write.get(), err.write.get());
  s.in = std::move(in.write);
  s.out = std::move(out.read);
  s.err = std::move(err.read);
  s.stop_read = std::move(stop.read);
  s.stop_write = std::move(stop.write);
  s.stdin_text = std::move(stdin_text);
  for (const Descriptor* fd : {&s.in, &s.out, &s.err}) set_nonblocking(*fd);
  s.pump = std::thread([&s] {
    s.pump_pipes();
    s.pumped = 1;
    futex_wake(&s.pumped, 1);
  });
}

Process::Process(Process&&) noexcept = default;

Process::~Process() {
  if (!state_ || state_->pid < 0) return;
  ::kill(state_->pid, SIGKILL);
  state_->stop_write.close();  // a grandchild may hold the pipes open: do not wait for their end
  state_->pump.join();
  state_->reap();
}

bool Process::done_within(uint64_t timeout_ns) const {
  if (!state_->pumped) futex_wait(&state_->pumped, 0, timeout_ns);
  return state_->pumped != 0;
}

ProcessResult Process::wait() {
  TUFF_CHECK(state_ && state_->pid >= 0, "Process::wait() was called twice");
  state_->pump.join();
  state_->result.exit_code = state_->reap();
  return std::move(state_->result);
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
