#include "sched/canonical.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"

namespace tuff::sched {

using namespace ir;

namespace {

bool closes_ranges(const Node* n) { return n->op == Op::End || n->op == Op::Reduce; }

class Canonicalizer {
 public:
  explicit Canonicalizer(const UOp& ast) : ast_(ast), nodes_(toposort(ast)) {}

  UOp run() {
    collect();
    for (const std::vector<const Node*>& list : lists_) merge_neighbours(list);
    number();
    return changed_ ? rebuild() : ast_;
  }

 private:
  // Lists of ranges closed together, offsets as linear forms, and ranges that something else uses.
  void collect() {
    for (const Node* n : nodes_) {
      if (n->op == Op::Range) ranges_.push_back(n);
      if (n->op == Op::Index) {
        forms_.emplace(n, linear_form(n->src(1)));
        for (const auto& [term, c] : forms_.at(n).terms) {
          if (term->op != Op::Range) block(term);
        }
        if (n->src_count > 2) block(n->src(2));
      } else if (closes_ranges(n)) {
        std::vector<const Node*> list;
        for (const UOp& s : closed_ranges(n)) list.push_back(s.get());
        add_once(lists_, list);
        if (n->src(0)->op == Op::Range) blocked_.insert(n->src(0).get());
      } else if (n->dtype != DType::Index) {
        // Index arithmetic below offsets and gates is seen through those; casts of it are values.
        for (const UOp& s : n->src()) {
          if (s->dtype == DType::Index) block(s);
        }
      }
    }
  }

  void block(const UOp& expression) {
    for (const Node* n : toposort(expression)) {
      if (n->op == Op::Range) blocked_.insert(n);
    }
  }

  static int64_t coefficient_of(const LinearForm& f, const Node* r) {
    for (const auto& [term, c] : f.terms) {
      if (term.get() == r) return c;
    }
    return 0;
  }

  bool walks_as_one(const Node* outer, const Node* inner) const {
    if (blocked_.count(outer) || blocked_.count(inner)) return false;
    if (outer->get<RangeArg>().kind != inner->get<RangeArg>().kind) return false;
    if (!outer->src(0)->is_const() || !inner->src(0)->is_const()) return false;
    const int64_t size = inner->src(0)->const_int();
    return std::all_of(forms_.begin(), forms_.end(), [&](const auto& f) {
      return coefficient_of(f.second, outer) == size * coefficient_of(f.second, inner);
    });
  }

  // Runs of ranges become their innermost one with the product as size.
  void merge_neighbours(const std::vector<const Node*>& list) {
    for (size_t k = list.size(); k-- > 1;) {
      if (!walks_as_one(list[k - 1], list[k])) continue;
      absorbed_.insert(list[k - 1]);
      changed_ = true;
    }
    int64_t size = 1;
    for (const Node* r : list) {
      if (!r->src(0)->is_const()) {
        size = 1;
        continue;
      }
      size *= r->src(0)->const_int();
      if (absorbed_.count(r)) continue;
      sizes_[r] = size;
      size = 1;
    }
  }

  void number() {
    std::ranges::sort(ranges_, {}, [](const Node* r) { return r->get<RangeArg>().id; });
    int32_t next = 0;
    for (const Node* r : ranges_) {
      if (absorbed_.count(r)) continue;
      auto size = sizes_.find(r);
      const UOp extent = size == sizes_.end() ? r->src(0) : index_const(size->second);
      const UOp fresh = range(extent, next++, r->get<RangeArg>().kind);
      changed_ = changed_ || fresh.get() != r;
      mapped_.emplace(r, fresh);
    }
  }

  UOp rebuild() {
    std::vector<UOp> src;
    for (const Node* n : nodes_) {
      if (n->op == Op::Range) continue;
      src.clear();
      for (const UOp& s : n->src()) {
        if (s->op == Op::Range && absorbed_.count(s.get())) {
          if (!closes_ranges(n)) src.push_back(index_const(0));
          continue;
        }
        src.push_back(mapped_.at(s.get()));
      }
      if (n->op == Op::Index && !absorbed_.empty()) src[1] = merged_offset(n);
      mapped_.emplace(n, with_src(UOp(n), src));
    }
    return mapped_.at(ast_.get());
  }

  UOp merged_offset(const Node* n) {
    LinearForm f = forms_.at(n);
    std::erase_if(f.terms, [&](const auto& t) { return absorbed_.count(t.first.get()) != 0; });
    for (auto& [term, c] : f.terms) term = mapped_.at(term.get());
    return simplify(from_linear_form(f));
  }

  const UOp ast_;
  std::vector<const Node*> nodes_;
  std::vector<const Node*> ranges_;
  std::vector<std::vector<const Node*>> lists_;
  std::unordered_map<const Node*, LinearForm> forms_;
  std::unordered_set<const Node*> blocked_, absorbed_;
  std::unordered_map<const Node*, int64_t> sizes_;
  std::unordered_map<const Node*, UOp> mapped_;
  bool changed_ = false;
};

}  // namespace

UOp canonicalize(const UOp& ast) { return Canonicalizer(ast).run(); }

}  // namespace tuff::sched
