// Random Index and Bool expressions over small ranges, and their meaning by direct enumeration.
// Called by the symbolic tests. Its evaluator shares no code with the engine: it is the oracle.
#pragma once

#include <functional>
#include <random>
#include <unordered_map>
#include <vector>

#include "ir/uop.h"
#include "ir/walk.h"

namespace tuff::ir::test {

// Values of leaves, by node.
using Point = std::unordered_map<const Node*, int64_t>;

inline int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  while (q * b > a) q--;
  return q;
}

inline int64_t meaning(const Node& n, const std::vector<int64_t>& s) {
  const bool boolean = n.dtype == DType::Bool;
  switch (n.op) {
    case Op::Add: return boolean ? (s[0] || s[1]) : s[0] + s[1];
    case Op::Sub: return boolean ? s[0] != s[1] : s[0] - s[1];
    case Op::Mul: return boolean ? (s[0] && s[1]) : s[0] * s[1];
    case Op::Neg: return -s[0];
    case Op::FloorDiv: return floor_quotient(s[0], s[1]);
    case Op::FloorMod: return s[0] - floor_quotient(s[0], s[1]) * s[1];
    case Op::Max: return s[0] > s[1] ? s[0] : s[1];
    case Op::CmpLt: return s[0] < s[1];
    case Op::CmpNe: return s[0] != s[1];
    case Op::CmpEq: return s[0] == s[1];
    case Op::And: return s[0] & s[1];
    case Op::Or: return s[0] | s[1];
    case Op::Xor: return s[0] ^ s[1];
    case Op::Where: return s[0] ? s[1] : s[2];
    default: throw std::runtime_error(std::string("no meaning for ") + name(n.op));
  }
}

// A list of expressions evaluated together, again and again at other points.
class Evaluator {
 public:
  explicit Evaluator(std::vector<UOp> roots) : roots_(std::move(roots)), order_(toposort(roots_)) {
    for (size_t i = 0; i < order_.size(); i++) {
      position_[order_[i]] = i;
      for (const UOp& u : order_[i]->src()) sources_.push_back(position_.at(u.get()));
    }
    values_.resize(order_.size());
  }
  void at(const Point& p) {
    size_t next = 0;
    for (size_t i = 0; i < order_.size(); i++) {
      const Node& n = *order_[i];
      const size_t* at = sources_.data() + next;
      next += n.src_count;
      if (n.is_const()) {
        values_[i] = n.const_int();
      } else if (n.op == Op::Variable || n.op == Op::Range || n.op == Op::Load) {
        values_[i] = p.at(&n);
      } else if (is_alu(n.op)) {
        operands_.clear();
        for (uint32_t k = 0; k < n.src_count; k++) operands_.push_back(values_[at[k]]);
        values_[i] = meaning(n, operands_);
      }
    }
  }
  int64_t operator[](size_t root) const { return values_[position_.at(roots_[root].get())]; }
  // Every node with its value: for bounds.
  void each(const std::function<void(const Node&, int64_t)>& fn) const {
    for (size_t i = 0; i < order_.size(); i++) {
      if (order_[i]->dtype == DType::Bool || order_[i]->dtype == DType::Index)
        fn(*order_[i], values_[i]);
    }
  }

 private:
  std::vector<UOp> roots_;
  std::vector<const Node*> order_;
  std::unordered_map<const Node*, size_t> position_;
  std::vector<size_t> sources_;  // positions, node after node
  std::vector<int64_t> values_, operands_;
};

inline int64_t value_of(const Node& n, const Point& p) {
  if (n.is_const()) return n.const_int();
  if (const auto known = p.find(&n); known != p.end()) return known->second;
  std::vector<int64_t> operands;
  for (const UOp& s : n.src()) operands.push_back(value_of(*s, p));
  return meaning(n, operands);
}

// Leaves with their values; a Range with a symbolic size takes those below the size's value.
struct Space {
  std::vector<UOp>
      leaves;  // Variables before the Ranges that they size; one Bool, last, may be there
  size_t index_leaves() const { return leaves.size() - (leaves.back()->dtype == DType::Bool); }
  void each(const std::function<void(const Point&)>& fn) const {
    Point p;
    walk(0, p, fn);
  }

 private:
  void walk(size_t i, Point& p, const std::function<void(const Point&)>& fn) const {
    if (i == leaves.size()) return fn(p);
    const Node& n = *leaves[i];
    int64_t high = n.max;
    if (n.op == Op::Range && !n.src(0)->is_const()) high = value_of(*n.src(0), p) - 1;
    for (int64_t v = n.min; v <= high; v++) {
      p[&n] = v;
      walk(i + 1, p, fn);
    }
    p.erase(&n);
  }
};

class Generator {
 public:
  Generator(uint64_t seed, Space space) : random_(seed), space_(std::move(space)) {}
  UOp index(int depth);
  UOp boolean(int depth);
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  const UOp& leaf() { return space_.leaves[size_t(pick(0, int64_t(space_.index_leaves()) - 1))]; }

 private:
  UOp divisor() {
    static constexpr int64_t kDivisors[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
    if (pick(0, 9) == 0) {
      for (const UOp& u : space_.leaves) {
        if (u->dtype != DType::Index || u->min < 1) continue;
        const int64_t more = pick(0, 3);
        return more ? make(Op::Add, DType::Index, {u, index_const(more)}) : u;
      }
    }
    return index_const(kDivisors[pick(0, 9)]);
  }
  UOp digits(int depth);
  UOp bound(const UOp& x);
  UOp nested_where(int depth);
  std::mt19937_64 random_;
  Space space_;
};

// The two halves of a division put together again, as reshapes do.
inline UOp Generator::digits(int depth) {
  const int64_t c = pick(2, 5), d = pick(2, 4), k = pick(0, 1) ? 1 : pick(-3, 3);
  auto binary = [](Op op, const UOp& a, const UOp& b) { return make(op, DType::Index, {a, b}); };
  auto number = [](int64_t v) { return index_const(v); };
  UOp x = index(depth - 1);
  if (pick(0, 2) == 0) x = binary(Op::Add, binary(Op::FloorMod, leaf(), number(c * d)), x);
  UOp high = binary(Op::FloorDiv, x, number(c));
  if (pick(0, 1)) high = binary(Op::FloorMod, high, number(d));
  const UOp low = pick(0, 3) ? binary(Op::FloorMod, x, number(c)) : x;
  return binary(Op::Add, binary(Op::Mul, high, number(low == x ? -c * k : c * k)),
                binary(Op::Mul, low, number(k)));
}

inline UOp Generator::nested_where(int depth) {
  const UOp c = boolean(1);
  auto choose = [&](const UOp& a, const UOp& b) {
    return make(Op::Where, DType::Index, {c, a, b});
  };
  const UOp inner = choose(index(depth - 1), index(0));
  return pick(0, 1) ? choose(inner, index(depth - 1)) : choose(index(depth - 1), inner);
}

// Nodes are made without folding, so that the rules and not the builders are what is tested.
inline UOp Generator::index(int depth) {
  if (depth == 0 || pick(0, 7) == 0) return pick(0, 5) == 0 ? index_const(pick(-9, 9)) : leaf();
  auto binary = [&](Op op) { return make(op, DType::Index, {index(depth - 1), index(depth - 1)}); };
  switch (pick(0, 15)) {
    case 0:
    case 1:
    case 2: return binary(Op::Add);
    case 3: return binary(Op::Sub);
    case 4:
    case 5: return make(Op::Mul, DType::Index, {index(depth - 1), index_const(pick(-6, 12))});
    case 6: return make(Op::Mul, DType::Index, {leaf(), index(depth > 2 ? 1 : 0)});
    case 7: return make(Op::Neg, DType::Index, {index(depth - 1)});
    case 8: return binary(Op::Max);
    case 9:
      return make(Op::Where, DType::Index,
                  {boolean(depth - 1), index(depth - 1), index(depth - 1)});
    case 10:
    case 11: return make(Op::FloorDiv, DType::Index, {index(depth - 1), divisor()});
    case 12: return digits(depth);
    case 13: return nested_where(depth);
    default: return make(Op::FloorMod, DType::Index, {index(depth - 1), divisor()});
  }
}

// x or x//c above or below a number near it.
inline UOp Generator::bound(const UOp& x) {
  const UOp c = index_const(pick(-4, 6));
  const UOp y = pick(0, 1) ? x : make(Op::FloorDiv, DType::Index, {x, index_const(pick(2, 4))});
  return pick(0, 1) ? make(Op::CmpLt, DType::Bool, {y, c}) : make(Op::CmpLt, DType::Bool, {c, y});
}

inline UOp Generator::boolean(int depth) {
  if (space_.leaves.back()->dtype == DType::Bool && pick(0, 5) == 0) return space_.leaves.back();
  if (depth == 0) return make(Op::CmpLt, DType::Bool, {leaf(), index_const(pick(-4, 8))});
  auto compare = [&](Op op) { return make(op, DType::Bool, {index(depth - 1), index(depth - 1)}); };
  auto logic = [&](Op op) {
    return make(op, DType::Bool, {boolean(depth - 1), boolean(depth - 1)});
  };
  static constexpr Op kLogic[] = {Op::And, Op::Or,  Op::And,   Op::Or,    Op::Xor,   Op::Add,
                                  Op::Mul, Op::Max, Op::CmpEq, Op::CmpNe, Op::CmpLt, Op::Sub};
  switch (pick(0, 10)) {
    case 0:
    case 1: return compare(Op::CmpLt);
    case 2: {  // an interval, perhaps empty, or its outside
      const UOp x = pick(0, 1) ? leaf() : index(depth - 1);
      return make(pick(0, 1) ? Op::And : Op::Or, DType::Bool, {bound(x), bound(x)});
    }
    case 3: return compare(Op::CmpEq);
    case 4: return compare(Op::CmpNe);
    case 5: return make(Op::CmpNe, DType::Bool, {boolean(depth - 1), bool_const(true)});
    case 6:
      return make(Op::Where, DType::Bool,
                  {boolean(depth - 1), boolean(depth - 1),
                   pick(0, 1) ? boolean(depth - 1) : bool_const(pick(0, 1))});
    default: return logic(kLogic[pick(0, 11)]);
  }
}

}  // namespace tuff::ir::test
