// Views: tensors made by movement of another one, and the way back along which what is written to
// them comes to it. Used by what makes views (movement, realize) and by what writes in place. A
// link must never keep a tensor, a graph or memory: it knows tensors by address and number alone.
// docs/design/views.md.
#pragma once

#include <cstdint>
#include <utility>

#include <tuff/tensor.h>
#include "base/ref.h"
#include "ir/uop.h"
#include "tensor/indexed.h"

namespace tuff::detail {

struct Weak;

struct Movement {
  enum class Kind : uint8_t {
    Detach,
    Reshape,  // arg: the Shape
    Permute,  // IntVec
    Flip,     // IntVec
    Shrink,   // Pairs
    Stride,   // IntVec: axis, and every how many-th of its elements
    Expand,   // the Shape
  };
  Kind kind;
  ir::Arg arg;
  bool detached = false;  // was made while gradients were off
  // The movement of another tensor.
  ir::UOp of(const ir::UOp& x) const;
};

class ViewLink : public RefCounted {
 public:
  ViewLink(Movement&& movement, const Weak& of, const Ref<ViewLink>& before);
  ViewLink(Movement::Kind kind, ir::Arg&& arg, bool detached, const Weak& of,
           const Ref<ViewLink>& before);
  const Movement movement;
  TensorImpl* const of;  // what it is a movement of, as long as a tensor of that number lives there
  const uint64_t of_number;
  Ref<ViewLink> before;  // what that one is a view of
  const uint32_t depth;

 protected:
  ~ViewLink() override;
};

// As long as it lives, movement on this thread makes no views: in functions that compute, whose
// operands nobody writes. No function of a user runs in it.
class NoViews {
 public:
  NoViews() : before_(std::exchange(on_, true)) {}
  ~NoViews() { on_ = before_; }
  NoViews(const NoViews&) = delete;
  static bool on() { return on_; }

 private:
  static inline constinit thread_local bool on_ = false;
  const bool before_;
};

// A tensor of this node, which the movement makes of `from`.
Tensor linked(const Tensor& from, ir::UOp u, Movement::Kind kind, ir::Arg&& arg);
Tensor derive(const Tensor& from, ir::UOp u);
template <class Arg>
Tensor view_of(const Tensor& from, ir::UOp u, Movement::Kind kind, Arg&& arg) {
  if (NoViews::on()) return derive(from, std::move(u));
  return linked(from, std::move(u), kind, ir::Arg(std::forward<Arg>(arg)));
}
// Another tensor of the same node, which is no view: of functions that copy, where there is nothing
// to do.
Tensor no_view(const Tensor& t);
// Every step-th element of an axis, from the first on.
ir::UOp stride_of(const ir::UOp& x, int64_t d, int64_t step);
Tensor strided(const Tensor& x, int64_t d, int64_t step);
Tensor flipped(const Tensor& x, int64_t d);

// What functions in place compute of: the tensor, or, of a view, what it would be now if it were
// taken once more.
Tensor current(const Tensor& x);
bool is_view(const Tensor& x);
// Of a view: that of what it is a view of, as of the tensor itself.
void require_no_gradient_of_viewed(const char* what, const Tensor& x, const char* instead);
// A part of a tensor replaced; of a view, in all that it is a view of.
void put_in_place(const char* what, Tensor& x, PutPart part);
// All of it.
void put_in_place(const char* what, Tensor& x, const Tensor& value);
// copy_from() of a view.
void copy_into_view(Tensor& x, const void* src, size_t size_bytes);

}  // namespace tuff::detail
