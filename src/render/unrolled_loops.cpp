#include "render/unrolled_loops.h"

namespace tuff::render {

using namespace ir;

namespace {

int64_t instructions_of(const Node& op, int64_t lanes) {
  if (op.op != Op::Dot) return is_alu(op.op) ? lanes : 0;
  for (const UOp& r : op.src().subspan(3)) lanes *= r->src(0)->max;
  return lanes;
}

}  // namespace

// Instructions of the whole loop stay within the smallest instruction cache of a GPU in use: 32 KB
// on AMD's, 8 bytes to an instruction, of which multiply-adds are issued in pairs. An H200 takes 397
// us for attention (24x1024x64) whose products of 4,096 are unrolled and 448 where they are loops.
bool is_worth_unrolling(const kernel::LinearKernel& k, const LaneSpace& space, size_t range) {
  constexpr int64_t kMostSteps = 32, kMostInstructions = 4096;
  const Node* loop = k.ops[range].get();
  if (!loop->src(0)->is_const() || loop->src(0)->max > kMostSteps) return false;
  int64_t instructions = 0;
  for (size_t i = range + 1; i < k.ops.size(); i++) {
    const Node& op = *k.ops[i];
    if (op.op == Op::End && op.src(0).get() == loop) break;
    const bool nests = op.op == Op::Range && space.bit_of(&op) < 0;
    if (nests || op.op == Op::Barrier) return false;
    instructions += instructions_of(op, space.count(k.lanes[i])) * loop->src(0)->max;
  }
  return instructions <= kMostInstructions;
}

}  // namespace tuff::render
