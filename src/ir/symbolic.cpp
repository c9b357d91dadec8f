// simplify() with its cache, and facts read off linear forms.
#include "ir/symbolic.h"

#include <memory>

#include "ir/linear_form.h"
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

// Leaked on purpose, as the intern table is: static objects may simplify while the process ends.
RewriteCache& cache() {
  static RewriteCache& c = *std::make_unique<RewriteCache>().release();
  return c;
}

}  // namespace

const RuleSet& symbolic_rules() {
  static const RuleSet& rules = *std::make_unique<RuleSet>("symbolic", all_rules()).release();
  return rules;
}

UOp simplify(const UOp& x) { return rewrite(x, symbolic_rules(), &cache()); }
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

}  // namespace tuff::ir
