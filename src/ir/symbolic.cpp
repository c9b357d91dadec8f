// simplify() with its cache, and facts read off linear forms.
#include "ir/symbolic.h"

#include <array>
#include <atomic>
#include <mutex>
#include <numeric>

#include "ir/linear_form.h"
#include "ir/rewrite.h"
#include "ir/symbolic_rules.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

std::vector<Rule> all_rules() {
  std::vector<Rule> out;
  for (auto group : {identity_rules, linear_rules, compare_rules, divmod_rules, bool_rules}) {
    std::vector<Rule> rules = group();
    out.insert(out.end(), rules.begin(), rules.end());
  }
  return out;
}

// Results of simplify() across calls, direct-mapped: a new result takes the place of an older one,
// so memory is bounded. Sound because nodes never change and an entry keeps its nodes alive.
class SimplifyCache : public RewriteCache {
 public:
  UOp find(const UOp& u) override {
    const size_t i = index(u);
    std::lock_guard lock(locks_[i % kLocks]);
    return entries_[i].key == u ? entries_[i].result : UOp();
  }
  void insert(const UOp& u, const UOp& result) override {
    if (u->src_count == 0) return;
    Entry e{u, result};
    const size_t i = index(u);
    std::lock_guard lock(locks_[i % kLocks]);
    std::swap(entries_[i], e);  // what was there is released after the lock
  }
  void clear() {
    for (size_t i = 0; i < kEntries; i++) {
      Entry e;
      std::lock_guard lock(locks_[i % kLocks]);
      std::swap(entries_[i], e);
    }
  }

 private:
  static constexpr size_t kEntries = 1 << 15, kLocks = 64;
  struct Entry {
    UOp key, result;
  };
  static size_t index(const UOp& u) { return (u->hash ^ (u->hash >> 31)) % kEntries; }
  std::array<Entry, kEntries> entries_;
  std::array<std::mutex, kLocks> locks_;
};

// Leaked on purpose, as the intern table is: static objects may simplify while the process ends.
SimplifyCache& cache() {
  static SimplifyCache& c = *std::make_unique<SimplifyCache>().release();
  return c;
}

}  // namespace

const RuleSet& symbolic_rules() {
  static const RuleSet& rules = *std::make_unique<RuleSet>("symbolic", all_rules()).release();
  return rules;
}

UOp simplify(const UOp& x) { return Rewriter(symbolic_rules(), &cache(), true).run(x); }
void drop_simplify_cache() { cache().clear(); }

std::vector<UOp> conjuncts(const UOp& condition) {
  std::vector<UOp> out = chain_operands(Op::And, condition);
  std::erase_if(out, [](const UOp& u) { return u->is_const_int(1); });
  return out;
}

std::optional<int64_t> coefficient(const UOp& x, const UOp& leaf) {
  const LinearForm f = linear_form(simplify(x));
  int64_t step = 0;
  for (const auto& [term, c] : f.terms) {
    if (term == leaf)
      step = c;
    else if (depends_on(term, leaf))
      return std::nullopt;
  }
  return step;
}

namespace {

int64_t divisor_of_form(const LinearForm& f, int depth);

int64_t divisor_of_term(const UOp& t, int depth) {
  if (depth > 16) return 1;
  auto below = [&](size_t i) { return divisor_of_form(linear_form(t->src(i)), depth + 1); };
  switch (t->op) {
    case Op::FloorMod:
    case Op::Max: return std::gcd(below(0), below(1));
    case Op::Where: return std::gcd(below(1), below(2));
    case Op::Mul: {
      int64_t d;
      return __builtin_mul_overflow(below(0), below(1), &d) ? 1 : d;
    }
    default: return 1;
  }
}

int64_t divisor_of_form(const LinearForm& f, int depth) {
  int64_t g = f.constant == INT64_MIN ? 1 : f.constant < 0 ? -f.constant : f.constant;
  for (const auto& [term, c] : f.terms) {
    int64_t d;
    if (g == 1 || __builtin_mul_overflow(c, divisor_of_term(term, depth), &d) || d == INT64_MIN)
      return 1;
    g = std::gcd(g, d);
  }
  return g;
}

}  // namespace

int64_t known_divisor(const UOp& x) {
  TUFF_CHECK(x->dtype == DType::Index, "known_divisor of a {}", name(x->dtype));
  return divisor_of_form(linear_form(x), 0);
}

}  // namespace tuff::ir
