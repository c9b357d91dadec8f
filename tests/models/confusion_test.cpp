#include "models/confusion.h"

#include <gmock/gmock.h>

#include "io/scratch_folder.h"
#include "tuff/error.h"

namespace tuff::models {
namespace {

TEST(Confusion, CountsAndFormats) {
  ConfusionTable table(3);
  EXPECT_EQ(table.accuracy(), 0);
  for (int i = 0; i < 9; ++i) table.add(0, 0);
  table.add(0, 2);
  table.add(2, 2);
  EXPECT_EQ(table.total(), 11u);
  EXPECT_EQ(table.at(0, 2), 1u);
  EXPECT_DOUBLE_EQ(table.accuracy(), 10.0 / 11);
  EXPECT_EQ(table.format(),
            "true\\is   0   1   2   right\n"
            "      0   9   .   1  90.00%\n"
            "      1   .   .   .       -\n"
            "      2   .   .   1 100.00%\n");
}

TEST(Confusion, RefusesUnknownClasses) {
  ConfusionTable table(10);
  EXPECT_THAT(error_text<InvalidArgument>([&] { table.add(3, 10); }),
              testing::HasSubstr("class 3 predicted as 10"));
}

}  // namespace
}  // namespace tuff::models
