// ForkServer: what a run gives, how it ends, and which programs take no server.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/os.h"
#include "base/os_fork_server.h"
#include "base/shipped.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

std::string library() {
  for (const std::string& place : shipped_places("libtuff_fork_server.so"))
    if (exists(place)) return place;
  return {};
}

std::unique_ptr<ForkServer> shell() {
  return ForkServer::start(*find_program("sh"), library());
}

TEST(ForkServer, RunsAreThoseOfTheProgram) {
  const auto server = shell();
  ASSERT_TRUE(server);
  const std::string input(300'000, 'x');  // more than the sockets hold
  for (int i = 0; i < 20; i++) {
    auto run = server->run({"sh", "-c", "cat; echo no >&2; exit $1", "sh", std::to_string(i)}, input);
    ASSERT_TRUE(run);
    const ProcessResult& r = run->wait();
    EXPECT_EQ(r.exit_code, i);
    EXPECT_EQ(r.out, input);
    EXPECT_EQ(r.err, "no\n");
  }
}

TEST(ForkServer, SeveralRunAtOnce) {
  const auto server = shell();
  ASSERT_TRUE(server);
  std::vector<Process> runs;
  for (int i = 0; i < 8; i++)
    runs.push_back(*server->run({"sh", "-c", "read line; echo $line; read rest"}, fmt::format("{}\n", i)));
  for (int i = 8; i-- > 0;) EXPECT_EQ(runs[size_t(i)].wait().out, fmt::format("{}\n", i));
}

TEST(ForkServer, ARunThatIsKilledSaysSo) {
  const auto server = shell();
  ASSERT_TRUE(server);
  EXPECT_EQ(server->run({"sh", "-c", "kill -SEGV $$"}, "")->wait().exit_code, 128 + SIGSEGV);
  auto run = server->run({"sh", "-c", "echo $$; exec sleep 1000"}, "");
  const pid_t pid = std::stoi(*run->read_line(10'000'000'000));
  run->kill();
  EXPECT_EQ(run->wait().exit_code, 128 + SIGKILL);
  for (int i = 0; i < 1000 && ::kill(pid, 0) == 0; i++) ::usleep(10'000);
  EXPECT_NE(::kill(pid, 0), 0) << "it still runs";
}

// What is left of a run nobody waits for, and of a server, ends with them.
TEST(ForkServer, RunsEndWithTheServer) {
  auto server = shell();
  ASSERT_TRUE(server);
  auto run = server->run({"sh", "-c", "echo $$; exec sleep 1000"}, "");
  const pid_t pid = std::stoi(*run->read_line(10'000'000'000));
  server.reset();
  for (int i = 0; i < 1000 && ::kill(pid, 0) == 0; i++) ::usleep(10'000);
  EXPECT_NE(::kill(pid, 0), 0) << "it still runs";
}

// Ctrl-C is for the whole process group: a Python process goes on after it.
TEST(ForkServer, AnInterruptEndsRunsAndNotTheServer) {
  const auto server = shell();
  ASSERT_TRUE(server);
  EXPECT_EQ(server->run({"sh", "-c", "kill -INT $PPID; kill -INT $$"}, "")->wait().exit_code,
            128 + SIGINT);
  EXPECT_EQ(server->run({"sh", "-c", "exit 7"}, "")->wait().exit_code, 7);
}

TEST(ForkServer, NoneOnceItHasEnded) {
  const auto server = shell();
  ASSERT_TRUE(server);
  ASSERT_EQ(server->run({"sh", "-c", "kill -9 $PPID"}, "")->wait().exit_code, 128 + SIGKILL);
  bool ended = false;
  for (int i = 0; i < 1000 && !ended; i++) {
    std::optional<Process> run = server->run({"sh", "-c", ":"}, "");
    ended = !run;
    if (run) run->wait();
  }
  EXPECT_TRUE(ended);
}

TEST(ForkServer, AChildOfForkHasNone) {
  const auto server = shell();
  ASSERT_TRUE(server);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(server->run({"sh", "-c", ":"}, "") ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(server->run({"sh", "-c", "exit 7"}, "")->wait().exit_code, 7);
}

TEST(ForkServer, ScriptsAndMissingFilesTakeNone) {
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/cc";
  std::ofstream(script) << "#!/bin/sh\nsleep 1000\n";
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  EXPECT_FALSE(ForkServer::start(script, library()));
  EXPECT_FALSE(ForkServer::start(folder.path(), library()));
  EXPECT_FALSE(ForkServer::start("/dev/zero", library()));
  ASSERT_EQ(::mkfifo((folder.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ForkServer::start(folder.path() + "/fifo", library()));
  EXPECT_FALSE(ForkServer::start(folder.path() + "/none", library()));
  EXPECT_FALSE(ForkServer::start(*find_program("sh"), folder.path() + "/none.so"));
}

}  // namespace
}  // namespace tuff::os
