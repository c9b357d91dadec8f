#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "base/os.h"

namespace tuff::os {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Process shell(const std::string& script, std::string input = {},
            const Environment& environment = {}) {
  return Process({"/bin/sh", "-c", script}, std::move(input), environment);
}

TEST(Child, AnswersLineByLineWhileItRuns) {
  Process c = shell("while read x; do echo got $x; done", "one\ntwo\n");
  EXPECT_EQ(c.read_line(10 * kSecond), "got one");
  EXPECT_FALSE(c.at_end());
  EXPECT_EQ(c.read_line(10 * kSecond), "got two");
  EXPECT_EQ(c.read_line(10 * kSecond), std::nullopt);
  EXPECT_TRUE(c.at_end());
  EXPECT_EQ(c.wait().exit_code, 0);
  EXPECT_EQ(c.wait().exit_code, 0);
}

TEST(Child, SilenceIsNoEnd) {
  Process c = shell("sleep 60");
  const uint64_t begin = monotonic_ns();
  EXPECT_EQ(c.read_line(kSecond / 20), std::nullopt);
  EXPECT_FALSE(c.at_end());
  c.kill();
  EXPECT_EQ(c.wait().exit_code, 128 + SIGKILL);
  EXPECT_LT(monotonic_ns() - begin, 30 * kSecond);
}

TEST(Child, TellsHowItEnded) {
  Process failing = shell("echo why >&2; exit 7");
  EXPECT_EQ(failing.read_line(10 * kSecond), std::nullopt);
  EXPECT_EQ(failing.wait().exit_code, 7);
  EXPECT_EQ(failing.error_tail(), "why\n");
  Process crashing = shell("kill -SEGV $$");
  EXPECT_EQ(crashing.wait().exit_code, 128 + SIGSEGV);
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
}

TEST(Child, OneThatReadsNothingEndsNobody) {
  Process c = shell("exec 0<&-; echo closed; sleep 0.1", std::string(1 << 22, 'x'));
  EXPECT_EQ(c.read_line(10 * kSecond), "closed");
  while (!c.at_end()) c.read_line(kSecond);
  EXPECT_EQ(c.wait().exit_code, 0);
}

TEST(Child, GetsTheEnvironmentAndWhatIsAdded) {
  Process c = shell("echo $TUFF_CHILD_TEST$PATH", {}, {{"TUFF_CHILD_TEST", "here:"}});
  const auto line = c.read_line(10 * kSecond);
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "here:" + std::string(::getenv("PATH")));
}

TEST(Child, AProgramThatIsNotThere) {
  EXPECT_THROW(Process({"/nonexistent/program"}), IoError);
}

TEST(Child, KeepsTheEndOfALongComplaint) {
  Process c = shell("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; echo done");
  EXPECT_EQ(c.read_line(30 * kSecond), "done");
  c.wait();
  EXPECT_LE(c.error_tail().size(), 4000u);
  EXPECT_NE(c.error_tail().find("line 2999"), std::string::npos);
}

TEST(OwnProgram, IsThisTest) { EXPECT_NE(own_program().find("base_test"), std::string::npos); }

}  // namespace
}  // namespace tuff::os
