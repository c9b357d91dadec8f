// Prelude: which parts a unit gets, and in which order.
#include <gtest/gtest.h>

#include "render/c_dialect.h"
#include "render/prelude.h"

namespace tuff::render {
namespace {

Prelude sample() {
  Prelude p;
  p.add("always;");
  p.add({"base"}, "base;");
  for (const char* n : {"2", "4"}) p.add({"get$N(", "put$N("}, "get$N( uses base;", {{"$N", n}});
  p.add({"twice("}, "twice( uses get4(;");
  return p;
}

TEST(Prelude, WhatAUnitNamesAndWhatThatNames) {
  const Prelude p = sample();
  EXPECT_EQ(p.of(""), "always;");
  EXPECT_EQ(p.of("x = base"), "always;base;");
  EXPECT_EQ(p.of("put2(x)"), "always;base;get2( uses base;");
  EXPECT_EQ(p.of("twice(x)"), "always;base;get4( uses base;twice( uses get4(;");
  EXPECT_EQ(p.of("twice(get2(x))"), p.whole());
}

TEST(Prelude, APartDoesNotBringLaterOnes) {
  EXPECT_EQ(sample().of("get4(x)"), "always;base;get4( uses base;");
}

TEST(Prelude, TheCpusIsShortForAKernelWithoutVectors) {
  const Prelude& cpu = c_cpu().prelude;
  const std::string scalar = cpu.of("f32 v = d0[i] * 2;");
  EXPECT_EQ(scalar.find("ext_vector_type"), std::string::npos);
  EXPECT_LT(scalar.size() * 10, cpu.whole().size());
  const std::string masked = cpu.of("v = (f32x16)get_u32x16((const u32*)(d1), m);");
  for (const char* name : {"typedef u32 u32x16 ", "typedef i32 i32x16 ", "bits_16(", "get_u32x8("})
    EXPECT_NE(masked.find(name), std::string::npos) << name;
}

// Nothing of a template is left over.
TEST(Prelude, EveryPlaceholderIsReplaced) {
  for (const CDialect* d : {&c_cpu(), &c_amdgpu(), &c_opencl()})
    EXPECT_EQ(d->prelude.whole().find('$'), std::string::npos);
}

}  // namespace
}  // namespace tuff::render
