// The library tuff_fork_server: preloaded into a program that is started as `program
// --tuff-fork-server`, it stands before the program's main() and runs that in a fork for every
// request, so that loading and linking the program is done once. os_process.cpp asks; standard
// input is the socket, one request after the other. Nothing of tuff may be linked to it.
#include <dlfcn.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/os_fork_server_request.h"

namespace {

using tuff::os::kForkServerReady;
using tuff::os::RequestHeader;

using Main = int (*)(int, char**, char**);

constexpr int kMostRuns = 256, kMostArguments = 256;

struct Run {
  pid_t pid;
  int status;  // where its end is told; hung up: nobody wants it any more
};

Main g_main = nullptr;
Run g_runs[kMostRuns];
int g_run_count = 0;

bool read_all(void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = ::read(STDIN_FILENO, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= size_t(n);
  }
  return true;
}

// The header, with the run's three streams and its status.
bool receive(RequestHeader* header, int (&fds)[4]) {
  iovec part{header, sizeof *header};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != ssize_t(sizeof *header))
    return false;
  const cmsghdr* c = CMSG_FIRSTHDR(&message);
  const bool all = c != nullptr && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fds);
  if (!all) return false;
  std::memcpy(fds, CMSG_DATA(c), sizeof fds);
  return true;
}

[[noreturn]] void run(char* words, uint32_t count, const int (&fds)[4], int signals,
                      char** environment) {
  char* argv[kMostArguments + 1] = {};
  for (uint32_t i = 0; i < count; i++) {
    argv[i] = words;
    words += std::strlen(words) + 1;
  }
  for (int fd = 0; fd < 3; fd++) ::dup2(fds[fd], fd);
  for (const int fd : fds) ::close(fd);
  for (int i = 0; i < g_run_count; i++) ::close(g_runs[i].status);
  ::close(signals);
  ::signal(SIGINT, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::exit(g_main(int(count), argv, environment));
}

// False: a request that is none.
bool begin(int signals, char** environment) {
  RequestHeader header;
  int fds[4];
  if (!receive(&header, fds)) return false;
  auto* words = static_cast<char*>(std::malloc(header.bytes));
  const bool complete = words != nullptr && header.count > 0 && header.count <= kMostArguments &&
                        g_run_count < kMostRuns && read_all(words, header.bytes);
  if (!complete) return false;
  const pid_t pid = ::fork();
  if (pid == 0) run(words, header.count, fds, signals, environment);
  std::free(words);
  for (int i = 0; i < 3; i++) ::close(fds[i]);
  if (pid < 0)
    ::close(fds[3]);  // without a status: the run is lost
  else
    g_runs[g_run_count++] = {pid, fds[3]};
  return true;
}

void reap(int signals) {
  signalfd_siginfo info;
  [[maybe_unused]] const ssize_t n = ::read(signals, &info, sizeof info);
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int i = 0; i < g_run_count; i++) {
      if (g_runs[i].pid != pid) continue;
      ::send(g_runs[i].status, &status, sizeof status, MSG_NOSIGNAL);
      ::close(g_runs[i].status);
      g_runs[i] = g_runs[--g_run_count];
      break;
    }
  }
}

// Until the other end of standard input is closed; runs that nobody waits for are ended.
int serve(int, char**, char** environment) {
  ::prctl(PR_SET_PDEATHSIG, 0);  // the thread that started this may end before its process
  ::signal(SIGINT, SIG_IGN);     // it ends the runs; the process that asks may go on
  ::unsetenv("LD_PRELOAD");
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  const int signals = ::signalfd(-1, &child, SFD_CLOEXEC);
  if (signals < 0 || ::write(STDOUT_FILENO, kForkServerReady, sizeof kForkServerReady - 1) < 0)
    return 1;
  for (bool open = true; open;) {
    pollfd fds[2 + kMostRuns] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
    for (int i = 0; i < g_run_count; i++) fds[2 + i] = {g_runs[i].status, 0, 0};
    if (::poll(fds, nfds_t(2 + g_run_count), -1) < 0) continue;
    for (int i = 0; i < g_run_count; i++)
      if (fds[2 + i].revents != 0) ::kill(g_runs[i].pid, SIGKILL);
    if (fds[1].revents != 0) reap(signals);
    if (fds[0].revents != 0) open = begin(signals, environment);
  }
  for (int i = 0; i < g_run_count; i++) ::kill(g_runs[i].pid, SIGKILL);
  return 0;
}

}  // namespace

// What starts main(). Source: glibc, csu/libc-start.c.
extern "C" [[gnu::visibility("default")]] int __libc_start_main(Main main, int argc, char** argv,
                                                                void (*init)(), void (*fini)(),
                                                                void (*rtld_fini)(), void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  if (argc == 2 && std::strcmp(argv[1], tuff::os::kForkServerFlag) == 0) {
    g_main = main;
    main = serve;
  }
  return start(main, argc, argv, init, fini, rtld_fini, stack);
}
