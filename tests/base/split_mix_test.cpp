#include "base/split_mix.h"

#include <gtest/gtest.h>

namespace tuff {
namespace {

// Rosetta Code, "Pseudo-random numbers/Splitmix64".
TEST(SplitMix64, GivesTheNumbersOfTheReference) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SplitMix64, StaysBelowItsBound) {
  SplitMix64 random(1);
  for (int i = 0; i < 1000; i++) EXPECT_LT(random.below(7), 7);
}

}  // namespace
}  // namespace tuff
