// Which stores go past the caches: those of a transpose's whole lines, where the caches are short.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/spec.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

// A CPU with lines as vectors and caches that hold next to nothing.
Target short_caches() {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  t.l2_bytes = t.l3_bytes = 512;
  t.features.streaming_stores = true;
  return t;
}

bool streams(const LinearKernel& k) {
  return std::any_of(k.ops.begin(), k.ops.end(),
                     [](const UOp& u) { return u->op == Op::Store && u->arg == Arg(kStreaming); });
}
const std::vector<Opt> kTiles{
    {OptKind::Vector, 1, 16}, {OptKind::Upcast, 0, 16}, {OptKind::Swap, 0, 1}};

TEST(StreamingStores, ATransposeWritesWholeLinesPastTheCaches) {
  Target t = short_caches();
  EXPECT_TRUE(streams(lower(transpose_ast(128, 256), t)));
  EXPECT_TRUE(streams(lower_with(transpose_ast(128, 256), t, kTiles)));
  const std::vector<std::string> skipped{"streaming-stores"};
  EXPECT_FALSE(streams(lower_with(transpose_ast(128, 256), t, kTiles, skipped)));
  t.l3_bytes = 128 * 256 * 4;
  EXPECT_FALSE(streams(lower(transpose_ast(128, 256), t))) << "the cache holds it";
  t.l3_bytes = t.l2_bytes = 0;
  EXPECT_FALSE(streams(lower(transpose_ast(128, 256), t))) << "no cache is known";
  t = short_caches();
  t.features.streaming_stores = false;
  EXPECT_FALSE(streams(lower(transpose_ast(128, 256), t)));
}

TEST(StreamingStores, PartsOfLinesAndWhatStandsAcrossThemDoNot) {
  const Target t = short_caches();
  const std::vector<Opt> half{
      {OptKind::Vector, 1, 8}, {OptKind::Upcast, 0, 8}, {OptKind::Swap, 0, 1}};
  EXPECT_FALSE(streams(lower_with(transpose_ast(128, 256), t, half))) << "half a line";
  // Rows of the output are 120 elements: 7.5 lines.
  const std::vector<Opt> across{
      {OptKind::Vector, 1, 8}, {OptKind::Upcast, 0, 16}, {OptKind::Swap, 0, 1}};
  EXPECT_FALSE(streams(lower_with(transpose_ast(120, 256), t, across)));
  // Padded: the last vector is a part.
  EXPECT_FALSE(streams(lower_with(transpose_ast(120, 256), t, kTiles)));
}

TEST(StreamingStores, WhatIsWrittenInOrderOrReadDoesNot) {
  const Target t = short_caches();
  EXPECT_FALSE(streams(lower(elementwise_ast(128, 256), t)));
  // In place: the tile's own memory is read too.
  AstBuilder b;
  const UOp i = b.loop(128), j = b.loop(256);
  const auto at = [&] { return j * 128 + i; };
  const auto sum = [&](int32_t slot) {
    return load(slot, 128 * 256, at()) + load(2, 128 * 256, i * 256 + j);
  };
  EXPECT_TRUE(
      streams(lower_with(kernel_of({store(0, 128 * 256, at(), sum(1), {j, i})}), t, kTiles)));
  EXPECT_FALSE(
      streams(lower_with(kernel_of({store(0, 128 * 256, at(), sum(0), {j, i})}), t, kTiles)));
}

TEST(StreamingStores, EveryTileMeansTheSame) {
  const Target t = short_caches();
  int streaming = 0;
  for (const UOp& ast : {transpose_ast(256, 48), transpose_ast(320, 32), transpose_ast(96, 40)}) {
    expect_same(ast, lower(ast, t), 0, "heuristics");
    for (const int64_t lanes : {4, 8, 16, 32}) {
      for (const int64_t rows : {1, 3, 4, 8, 16}) {
        for (const bool swapped : {false, true}) {
          std::vector<Opt> opts{{OptKind::Vector, 1, lanes}, {OptKind::Upcast, 0, rows}};
          if (rows == 1) opts.pop_back();
          if (swapped) opts.push_back({OptKind::Swap, 0, 1});
          const LinearKernel k = lower_with(ast, t, opts);
          check_linear_spec(k.ops, "streaming-stores");
          expect_same(ast, k, 0, to_string(opts));
          streaming += streams(k) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GE(streaming, 10) << "too few schedules stream";
}

}  // namespace
}  // namespace tuff::kernel::testing
