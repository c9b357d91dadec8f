#include "tensor/positions.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "engine/program/compile_options.h"
#include "engine/realize/capture.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::detail {
namespace {

using engine::Extremes;
using ir::Node;
using ir::Op;
using ir::UOp;

using MaybeExtremes = std::optional<Extremes>;

constexpr int kDeepest = 100;  // a chain of assignments may be longer than a stack

thread_local PositionRules* current_rules = nullptr;

MaybeExtremes fitted(const Extremes& e, DType t) {
  if (!is_int(t)) return {};
  const int bits = row(t).storage_bits;
  const bool has_sign = !is_unsigned(t);
  const int64_t most = bits == 64 ? std::numeric_limits<int64_t>::max()
                                  : (int64_t(1) << (bits - has_sign)) - 1;
  const int64_t least = has_sign ? -most - 1 : 0;
  if (e.least < least || e.greatest > most) return {};
  return e;
}

MaybeExtremes counted(const ir::Dim& extent) {
  const int64_t last = std::max<int64_t>(extent.max() - 1, 0);
  if (!extent.is_const()) return Extremes{0, 0, last, last, false};
  return Extremes{0, std::min<int64_t>(1, last), std::max<int64_t>(last - 1, 0), last};
}

// All four of them, as `op` with a number changes them.
MaybeExtremes with_number(Op op, Extremes e, int64_t number) {
  if (op == Op::Mul && number <= 0) return {};
  for (int64_t* v : {&e.least, &e.second_least, &e.second_greatest, &e.greatest}) {
    const bool wraps = op == Op::Add   ? __builtin_add_overflow(*v, number, v)
                       : op == Op::Sub ? __builtin_sub_overflow(*v, number, v)
                                       : __builtin_mul_overflow(*v, number, v);
    if (wraps) return {};
  }
  return e;
}

// What follows of memory that the host knows, of numbers and of ranges. `instead` is the memory of
// what the rule calls `buffer`.
class Knowledge {
 public:
  Knowledge() = default;
  Knowledge(const Node* buffer, Ref<engine::Buffer> instead)
      : buffer_(buffer), instead_(std::move(instead)) {}

  // What the host knows of a node `depth` deep; none where that is too deep.
  MaybeExtremes extremes(const Node& n, int depth = 0) const {
    if (depth > kDeepest) return {};
    switch (n.op) {
      case Op::Buffer: return of_memory(n);
      case Op::Const: return of_number(n);
      case Op::Iota: return counted(n.shape[0]);
      case Op::Reshape:
      case Op::Permute:
      case Op::Expand:
      case Op::Flip:
      case Op::Detach:
      case Op::Mark:
      case Op::Checkpoint:
      case Op::Again:
      case Op::Ruled:
      case Op::Contiguous:
      case Op::Copy: return extremes(*n.src(0), depth + 1);
      case Op::Shrink: return of_part(extremes(*n.src(0), depth + 1));
      case Op::Assign:
        return ir::assigned_part(n) ? MaybeExtremes() : extremes(*n.src(1), depth + 1);
      case Op::Cast: return of_cast(n, depth + 1);
      case Op::Add:
      case Op::Sub:
      case Op::Mul: return of_arithmetic(n, depth + 1);
      default: return {};
    }
  }

  // The values of a node that has extremes and numbers as extents; none where they were forgotten,
  // or are a part of more than the host should compute.
  std::optional<ir::HostArray> values(const UOp& u) const {
    constexpr int64_t kMostComputed = int64_t(1) << 24;
    ir::Bindings bindings;
    std::vector<std::vector<std::byte>> kept;
    for (const Node* n : ir::toposort(u)) {
      if (is_symbolic(n->shape) || ir::element_count(n->shape) > kMostComputed) return {};
      if (n->op != Op::Buffer) continue;
      const Ref<ir::Storage>& storage = n->get<Ref<ir::Storage>>();
      auto& bytes = kept.emplace_back(size_t(storage->count) * size_bytes(storage->dtype));
      // What is not known was assigned to: nothing of it is in the value.
      if (extremes(*n) && !read(memory(*n), bytes)) return {};
      bindings.storages.emplace(storage->id, bytes);
    }
    return ir::interpret({&u, 1}, bindings).at(0);
  }

 private:
  static bool read(const Ref<engine::Buffer>& b, std::span<std::byte> out) {
    engine::Buffer& root = b->root();
    const engine::KnownIntegers::Bytes all = root.known_integers().contents([&] {
      std::vector<std::byte> bytes(root.size_bytes());
      root.copyout(bytes.data());
      return bytes;
    });
    if (!all || b->byte_offset() + out.size() > all->size()) return false;
    std::copy_n(all->begin() + ptrdiff_t(b->byte_offset()), out.size(), out.begin());
    return true;
  }

  Ref<engine::Buffer> memory(const Node& n) const {
    return &n == buffer_ && instead_ ? instead_ : buffer_of(UOp(&n));
  }

  MaybeExtremes of_memory(const Node& n) const {
    const Ref<engine::Buffer> b = memory(n);
    if (!b || !is_int(b->dtype) || b->dtype != b->root().dtype) return {};
    const MaybeExtremes e = b->known_integers().extremes();
    return b->count == b->root().count ? e : of_part(e);
  }

  static MaybeExtremes of_number(const Node& n) {
    if (!is_int(n.dtype) || n.min != n.max) return {};
    return Extremes{n.min, n.min, n.min, n.min};
  }

  static MaybeExtremes of_part(MaybeExtremes e) {
    if (e) e->attained = false;
    return e;
  }

  MaybeExtremes of_cast(const Node& n, int depth) const {
    if (!is_int(n.src(0)->dtype)) return {};
    const MaybeExtremes e = extremes(*n.src(0), depth);
    return e ? fitted(*e, n.dtype) : e;
  }

  MaybeExtremes of_arithmetic(const Node& n, int depth) const {
    MaybeExtremes x = extremes(*n.src(0), depth);
    if (!x) return {};
    MaybeExtremes y = extremes(*n.src(1), depth);
    if (!y) return {};
    if (n.op != Op::Sub && x->least == x->greatest) std::swap(x, y);
    if (y->least != y->greatest) return {};
    const MaybeExtremes e = with_number(n.op, *x, y->least);
    return e ? fitted(*e, n.dtype) : e;
  }

  const Node* buffer_ = nullptr;
  Ref<engine::Buffer> instead_;
};

std::string range_text(const Positions& p) {
  std::string out = p.high <= p.low ? "an axis without elements"
                                    : fmt::format("{}..{}", p.low, p.high - 1);
  if (p.ignored) out += fmt::format(" and is not ignore_index {}", *p.ignored);
  return out;
}

std::string place_text(int64_t element, const ir::IntVec& shape) {
  Sizes place(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d]) place[d] = element % shape[d];
  return place.empty() ? std::string() : " at " + text(place);
}

void require_values(const Positions& p, const ir::HostArray& values) {
  for (int64_t i = 0; i < values.count(); i++) {
    const Scalar v = values.at(i);
    const int64_t at = v.as_int();
    const bool beyond = v.dtype == DType::U64 && at < 0;
    if (!beyond && ((at >= p.low && at < p.high) || at == p.ignored)) continue;
    fail<IndexError>("{}: {} {}{} is outside {}", p.function, p.noun,
                     beyond ? std::to_string(uint64_t(at)) : std::to_string(at),
                     place_text(i, values.shape), range_text(p));
  }
}

int64_t one_outside(const Positions& p, const Extremes& e) {
  const int64_t least = e.least == p.ignored ? e.second_least : e.least,
                greatest = e.greatest == p.ignored ? e.second_greatest : e.greatest;
  return least < p.low ? least : greatest;
}

// Whether the host can tell; IndexError if it tells that one is outside.
bool known_inside(const Positions& p, const UOp& u, const Knowledge& known) {
  const MaybeExtremes e = known.extremes(*u);
  if (!e) return false;
  if (e->inside(p.low, p.high, p.ignored)) return true;
  if (!is_symbolic(u->shape)) {
    const std::optional<ir::HostArray> values = known.values(u);
    if (values) require_values(p, *values);
    return bool(values);
  }
  if (e->attained)
    fail<IndexError>("{}: {} {} is outside {}", p.function, p.noun, one_outside(p, *e),
                     range_text(p));
  return false;
}

// What is captured has written it: a call of the Jit does not bring the value.
bool is_written(const Node& buffer) {
  const engine::Capture* capture = engine::Capture::current();
  return capture && capture->bytes().written(*buffer_of(UOp(&buffer)));
}

// The memory that a value is of, if that is one; of none, null.
const Node* memory_below(const UOp& u) {
  const Node* found = nullptr;
  for (const Node* n : ir::toposort(u)) {
    if (n->op == Op::Assign || (n->op == Op::Buffer && found)) return nullptr;
    if (n->op == Op::Buffer) found = n;
  }
  return found;
}

}  // namespace

Positions on_axis(const char* function, const Size& extent, bool from_end) {
  return {.function = function, .low = from_end ? -extent.max() : 0, .high = extent.max()};
}

void note_host_values(engine::Buffer& b, const void* values) {
  const int64_t most = int64_t(1) << (size_bytes(b.dtype) == 1 ? 20 : 23);
  if (is_int(b.dtype) && b.count > 0 && b.count <= most && b.count == b.root().count)
    b.known_integers().learn(engine::extremes_of(b.dtype, values, b.count));
}

std::optional<Extremes> known_extremes(const UOp& u) {
  if (!is_int(u->dtype) || is_symbolic(u->shape) || ir::element_count(u->shape) == 0) return {};
  return Knowledge().extremes(*u);
}

void require_inside(const Positions& allowed, const Tensor& index) {
  const UOp u = uop(index);
  if (!is_symbolic(u->shape) && ir::element_count(u->shape) == 0) return;
  if (current_rules) {
    const Node* memory = memory_below(u);
    if (memory && !is_written(*memory)) current_rules->rules_.push_back({allowed, u, memory});
  }
  if (known_inside(allowed, u, Knowledge()) || !engine::checking_bounds()) return;
  if (current_rules)
    current_rules->computed_.push_back({allowed, index});
  else
    require_computed_inside(allowed, index);
}

PositionRules::PositionRules() : before_(std::exchange(current_rules, this)) {}
PositionRules::~PositionRules() { current_rules = before_; }

void require_known_inside(const PositionRules::Rule& rule, const Ref<engine::Buffer>& memory) {
  known_inside(rule.allowed, rule.value, Knowledge(rule.buffer, memory));
}

void require_computed_inside(const Positions& allowed, const Tensor& index) {
  ir::HostArray values{index.dtype(), {}, {}};
  for (const Size& n : index.sizes()) values.shape.push_back(n);
  const Ref<engine::Buffer> memory = memory_of(index);
  values.bytes.resize(memory->size_bytes());
  memory->copyout(values.bytes.data());
  require_values(allowed, values);
}

}  // namespace tuff::detail
