// What the environment asks of the compiler, as options.
#include "engine/program/compile_options.h"

#include <gtest/gtest.h>

#include <tuff/error.h>

#include "base/env.h"

namespace tuff::engine {
namespace {

std::string refusal(const std::string& words) {
  const EnvOverride skip(Env::TUFF_SKIP, words);
  try {
    lower_options();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(CompileOptions, SkippedAreStepsOfTheScheduleAndPasses) {
  EXPECT_TRUE(lower_options().skipped.empty());
  EXPECT_EQ(schedule_steps().skipped, 0u);
  const EnvOverride skip(Env::TUFF_SKIP, "parts,opts,merge");
  EXPECT_EQ(lower_options().skipped, std::vector<std::string>{"opts"});
  for (const sched::Step s : sched::kSteps)
    EXPECT_EQ(schedule_steps().skips(s), s == sched::Step::Parts || s == sched::Step::Merge);
}

TEST(CompileOptions, AWordThatIsNeitherIsRefused) {
  EXPECT_EQ(refusal("rows,prefetch"), "");
  const std::string unknown = refusal("opts,part");
  EXPECT_EQ(unknown.find("TUFF_SKIP: 'part' is not merge-axes, "), 0) << unknown;
  EXPECT_NE(unknown.find("; did you mean parts?"), std::string::npos) << unknown;
}

TEST(CompileOptions, OneSeedDrawsPartsAndOpts) {
  EXPECT_TRUE(lower_options().choose_opts);
  const EnvOverride seed(Env::TUFF_RANDOM_OPTS, "7"), none(Env::TUFF_NOOPT, "1"),
      spec(Env::TUFF_SPEC, "1");
  EXPECT_EQ(lower_options().random_seed, 7u);
  EXPECT_EQ(schedule_steps().random_seed, 7u);
  EXPECT_FALSE(lower_options().choose_opts);
  EXPECT_TRUE(lower_options().check_spec);
  EXPECT_TRUE(schedule_steps().check_spec);
}

}  // namespace
}  // namespace tuff::engine
