// Opts: the named transformations of a kernel's loops. An opt only splits a range and says how its
// parts are run; values are never unrolled in the IR. What each asks for and does: rules.h. Must
// never know a renderer or a device's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"

namespace tuff::kernel {

enum class OptKind : uint8_t {
  Split,   // inner serial loop of `amount`
  Upcast,  // inner register-tile lanes; pads if `amount` does not divide; output axes
  Vector,  // inner SIMD lanes, a power of two, once per kernel; pads; output axes
  Unroll,  // inner unrolled lanes of a reduction; pads if `amount` does not divide
  Group,   // `amount` launch groups outside what is left (0: all of it); pads; output axes. Those of
           // what is left afterwards are the innermost of the launch: after 1, all of the axis'
  Local,  // inner invocations of a workgroup; pads if `amount` does not divide; output axes. Of an
          // axis that shared reductions depend on: before GroupReduce invocations that share one
          // are neighbours, after it those of different outputs are. Of one that no reduction
          // depends on: the invocations that share them, as many. Along columns of kept rows: the
          // same invocations in each nest
  GroupReduce,  // a reduction shared by `amount` invocations, a power of two; pads
  Swap,         // loops of axis `axis` and axis `amount` change places
  // So many elements of all kept rows at a time, in a loop that all reductions of them have in
  // common: the rows are filled inside of it (see Tiling::slab_axes, of which `axis` is one). Once
  // nothing is left of the axes that one of those reductions has for itself; pads.
  Slab,
  // A grid-stride loop: what is left of the axis is shared out to `amount` launch groups that all
  // nests of the kernel have in common. On devices with workgroups these take rows of a workgroup's
  // width in turn, on others a run each. A group that nothing is left for makes no iteration;
  // output axes, once per nest, the same amount in each. After GroupReduce the invocations that
  // share sums have outputs of their own in nests that share none.
  Spread,
  Stage,  // operand `axis` (see operands()) is copied into fast memory inside the `amount`
          // outermost loops, those of outputs before those of the reduction, and read from there:
          // by a workgroup together; after all others
  // Software pipelining: what the copy of factor `axis` takes in the next iteration of the innermost
  // loop around it is loaded into registers before the products of this one. `amount`: the places
  // that copies take in turn. 1: invocations wait for the products of the last iteration before they
  // fill it again; 2: they need not (double buffering), at twice the workgroup memory.
  Ahead,
  // Sum of products `axis` (both of its factors are Tiling::factors) by cooperative matrices of the
  // Target's shape `amount`; before all others. Then Upcast makes fragments of a subgroup and Local
  // subgroups of a workgroup. Along an axis that the shape does not divide the last matrix begins
  // early enough to end with it; along others nothing pads.
  Matrix,
};
inline constexpr OptKind kOptKinds[] = {
    OptKind::Split, OptKind::Upcast,      OptKind::Vector, OptKind::Unroll, OptKind::Group,
    OptKind::Local, OptKind::GroupReduce, OptKind::Swap,   OptKind::Slab,   OptKind::Spread,
    OptKind::Stage, OptKind::Ahead,       OptKind::Matrix};
const char* name(OptKind k);
bool allows(const Target& target, OptKind k);  // whether any kernel can have it there

struct Opt {
  OptKind kind;
  int axis;
  int64_t amount;
  bool operator==(const Opt&) const = default;
};
std::string to_string(const Opt& o);  // "upcast(0,4)"
std::string to_string(std::span<const Opt> opts);

}  // namespace tuff::kernel
