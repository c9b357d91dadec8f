#include <gtest/gtest.h>
#include <tuff/error.h>

#include <csignal>
#include <vector>

#include "base/os.h"

namespace tuff::os {
namespace {

TEST(Process, CollectsOutputAndExitCode) {
  const ProcessResult r = Process({"sh", "-c", "echo out; echo err >&2; exit 7"}).wait();
  EXPECT_EQ(r.exit_code, 7);
  EXPECT_EQ(r.out, "out\n");
  EXPECT_EQ(r.err, "err\n");
}

TEST(Process, PassesArgumentsWithoutAShell) {
  EXPECT_EQ(Process({"printf", "%s|", "a b", "$HOME", "*"}).wait().out, "a b|$HOME|*|");
}

TEST(Process, BigInputAndOutputDoNotBlockEachOther) {
  std::string big(8 << 20, 'x');
  for (size_t i = 0; i < big.size(); i += 997) big[i] = char('a' + i % 26);
  const ProcessResult r = Process({"cat"}, big).wait();
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_TRUE(r.out == big);
}

TEST(Process, AChildThatDoesNotReadItsInputIsNoError) {
  const ProcessResult r = Process({"true"}, std::string(4 << 20, 'x')).wait();
  EXPECT_EQ(r.exit_code, 0);
}

TEST(Process, SeveralRunAtOnce) {
  const uint64_t start = monotonic_ns();
  std::vector<Process> children;
  for (int i = 0; i < 8; ++i)
    children.emplace_back(std::vector<std::string>{"sh", "-c", "sleep 0.3; cat"},
                          std::to_string(i));
  for (int i = 7; i >= 0; --i) EXPECT_EQ(children[i].wait().out, std::to_string(i));
  EXPECT_LT(monotonic_ns() - start, 2'000'000'000u);  // one after another they need 2.4 s
}

TEST(Process, ASignalIsAnExitCodeAbove128) {
  EXPECT_EQ(Process({"sh", "-c", "kill -SEGV $$"}).wait().exit_code, 128 + SIGSEGV);
}

TEST(Process, TheDestructorKillsAndReaps) {
  const uint64_t start = monotonic_ns();
  { Process forgotten({"sleep", "60"}); }
  { Process with_grandchild({"sh", "-c", "sleep 5 & sleep 60"}); }  // holds the pipes open
  EXPECT_LT(monotonic_ns() - start, 3'000'000'000u);
}

TEST(Process, AMissingProgramIsNamed) {
  try {
    Process p({"no-such-program-here"});
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("'no-such-program-here'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(Process({}), InvalidArgument);
}

// In a child of its own, since the flag and the handlers stay for the life of a process.
TEST(Interrupts, TheFirstSetsTheFlagAndTheSecondEnds) {
  const auto child = [] {
    catch_interrupts();
    if (interrupted()) std::_Exit(1);
    ::raise(SIGINT);
    if (!interrupted()) std::_Exit(2);
    ::raise(SIGTERM);
    std::_Exit(3);
  };
  EXPECT_EXIT(child(), ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace tuff::os
