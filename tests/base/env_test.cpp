#include "base/env.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/nearest.h"

namespace tuff {
namespace {

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Env, OverrideReachesAllThreadsAndEnds) {
  const std::string before = env_text(Env::TUFF_DEVICE);
  {
    EnvOverride outer(Env::TUFF_DEVICE, "CPU");
    EnvOverride inner(Env::TUFF_DEVICE, "NULL");
    std::string seen;
    std::thread([&] { seen = env_text(Env::TUFF_DEVICE); }).join();
    EXPECT_EQ(seen, "NULL");
  }
  EXPECT_EQ(env_text(Env::TUFF_DEVICE), before);
}

TEST(Env, IntegersParseWholly) {
  EnvOverride v(Env::TUFF_SHUFFLE_SEED, "-12");
  EXPECT_EQ(env_int(Env::TUFF_SHUFFLE_SEED), -12);
  for (const char* bad : {"", "x", "12x", " 1", "1.5", "99999999999999999999"}) {
    EnvOverride wrong(Env::TUFF_THREADS, bad);
    const std::string text = message_of([] { env_int(Env::TUFF_THREADS); });
    EXPECT_NE(text.find("TUFF_THREADS='" + std::string(bad) + "'"), std::string::npos) << text;
  }
}

TEST(Env, FlagsHaveSixSpellings) {
  for (const char* yes : {"1", "true", "on"}) {
    EnvOverride v(Env::TUFF_CACHE, yes);
    EXPECT_TRUE(env_flag(Env::TUFF_CACHE));
  }
  for (const char* no : {"0", "false", "off"}) {
    EnvOverride v(Env::TUFF_CACHE, no);
    EXPECT_FALSE(env_flag(Env::TUFF_CACHE));
  }
  EnvOverride v(Env::TUFF_CACHE, "yes");
  EXPECT_NE(message_of([] { env_flag(Env::TUFF_CACHE); }).find("TUFF_CACHE='yes'"),
            std::string::npos);
}

TEST(Env, IntegersHaveRanges) {
  for (const char* bad : {"-1", "8", "9223372036854775807"}) {
    EnvOverride v(Env::TUFF_DEBUG, bad);
    EXPECT_EQ(message_of([] { env_int(Env::TUFF_DEBUG); }),
              "TUFF_DEBUG='" + std::string(bad) + "' is not an integer from 0 to 7; the default is 0");
    EXPECT_EQ(debug_level(), 0);  // logging is never a reason to fail
  }
  EnvOverride v(Env::TUFF_DEBUG, "7");
  EXPECT_EQ(env_int(Env::TUFF_DEBUG), 7);
}

TEST(Env, ChoicesAreNamed) {
  {
    EnvOverride v(Env::TUFF_IO, "tapes");
    EXPECT_EQ(message_of([] { env_text(Env::TUFF_IO); }),
              "TUFF_IO='tapes' is not uring or threads; unset it for the default");
  }
  for (const char* good : {"", "uring", "threads"}) {
    EnvOverride v(Env::TUFF_IO, good);
    EXPECT_EQ(env_text(Env::TUFF_IO), good);
  }
}

TEST(Env, LongValuesAreShortenedInMessages) {
  EnvOverride v(Env::TUFF_BEAM, std::string(100'000, 'x'));
  EXPECT_LT(message_of([] { env_int(Env::TUFF_BEAM); }).size(), 300u);
}

TEST(Nearest, CountsSlips) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("TUFF_beam", "TUFF_BEAM"), 0u);
  // Symmetric, at most the longer length, 0 of itself.
  const std::vector<std::string> words = {"", "a", "train", "trian", "tune", "TUFF_BEAM", "convert"};
  for (const std::string& a : words) {
    EXPECT_EQ(edit_distance(a, a), 0u);
    for (const std::string& b : words) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << ' ' << b;
      EXPECT_LE(edit_distance(a, b), std::max(a.size(), b.size()));
    }
  }
}

TEST(Nearest, SuggestsWhatIsNear) {
  const std::vector<std::string> names = {"devices", "train", "tune"};
  EXPECT_EQ(did_you_mean("trian", names), "; did you mean train?");
  EXPECT_EQ(did_you_mean("device", names), "; did you mean devices?");
  EXPECT_EQ(did_you_mean("foo", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 't'), names), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

TEST(Env, EveryDefaultOfTheTableParses) {
  for (const EnvRow& row : env_rows()) {
    const Env v = Env(&row - env_rows().data());
    EnvOverride as_default(v, row.default_value);
    if (row.kind == EnvKind::Int) {
      EXPECT_NO_THROW(env_int(v)) << row.name;
    }
    if (row.kind == EnvKind::Flag) {
      EXPECT_NO_THROW(env_flag(v)) << row.name;
    }
    EXPECT_GT(std::string(row.prose).size(), 10u) << row.name;
  }
}

TEST(Log, DebugLevelFollowsTheOverride) {
  EnvOverride outer(Env::TUFF_DEBUG, "3");
  EXPECT_EQ(debug_level(), 3);
  {
    EnvOverride inner(Env::TUFF_DEBUG, "0");
    EXPECT_EQ(debug_level(), 0);
  }
  EXPECT_EQ(debug_level(), 3);
}

TEST(Log, LevelDecidesWhatIsWritten) {
  EnvOverride level(Env::TUFF_LOG, "warn");
  ::testing::internal::CaptureStderr();
  log_info("quiet {}", 1);
  log_warn("loud {}", 2);
  {
    EnvOverride off(Env::TUFF_LOG, "off");
    log_warn("unheard");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[tuff warn] loud 2\n");
}

TEST(Check, NamesExpressionPlaceAndValues) {
  try {
    TUFF_CHECK(1 + 1 == 3, "sum was {}", 2);
    FAIL();
  } catch (const InternalError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("1 + 1 == 3: sum was 2"), std::string::npos) << text;
    EXPECT_NE(text.find("env_test.cpp:"), std::string::npos) << text;
    EXPECT_STREQ(e.kind(), "InternalError");
  }
}

}  // namespace
}  // namespace tuff
