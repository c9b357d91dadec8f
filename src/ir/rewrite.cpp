#include "ir/rewrite.h"

#include "ir/text.h"

namespace tuff::ir {
namespace {

constexpr uint32_t kMaxRewrites = 1000;

void count(std::atomic<uint64_t>& c) {
  c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The rule's result, provided that it is another node of the same dtype and shape.
UOp try_rule(const Rule& rule, const UOp& u) {
  if (!rule.roots.accepts(u)) return {};
  UOp result = rule.result(u);
  if (!result || result == u || result->dtype != u->dtype || !(result->shape == u->shape))
    return {};
  return result;
}

}  // namespace

RuleSet::RuleSet(const char* name, std::vector<Rule> rules)
    : name_(name), rules_(std::move(rules)), counters_(rules_.size()) {
  for (size_t i = 0; i < rules_.size(); i++) {
    for (size_t o = 0; o < kOpRows.size(); o++) {
      if (rules_[i].roots.has(Op(o))) buckets_[o].push_back(uint16_t(i));
    }
  }
}

std::vector<RuleCount> RuleSet::counts() const {
  std::vector<RuleCount> out;
  for (size_t i = 0; i < rules_.size(); i++)
    out.push_back({rules_[i].name, counters_[i].tries.load(), counters_[i].hits.load()});
  return out;
}

UOp RuleSet::apply_one(size_t i, const UOp& u) const { return try_rule(rules_.at(i), u); }

UOp RuleSet::apply(const UOp& u, const char** rule_name) const {
  for (uint16_t i : buckets_[size_t(u->op)]) {
    count(counters_[i].tries);
    if (UOp result = try_rule(rules_[i], u)) {
      count(counters_[i].hits);
      if (rule_name) *rule_name = rules_[i].name;
      return result;
    }
  }
  return {};
}

namespace {

size_t cache_index(const UOp& u, size_t entries) { return (u->hash ^ (u->hash >> 31)) % entries; }

}  // namespace

UOp RewriteCache::find(const UOp& u) {
  const size_t i = cache_index(u, kEntries);
  std::lock_guard lock(locks_[i % kLocks]);
  return entries_[i].key == u ? entries_[i].result : UOp();
}

void RewriteCache::insert(const UOp& u, const UOp& result) {
  if (u->src_count == 0) return;
  Entry e{u, result};
  const size_t i = cache_index(u, kEntries);
  std::lock_guard lock(locks_[i % kLocks]);
  std::swap(entries_[i], e);  // what was there is released after the lock
}

void RewriteCache::clear() {
  for (size_t i = 0; i < kEntries; i++) {
    Entry e;
    std::lock_guard lock(locks_[i % kLocks]);
    std::swap(entries_[i], e);
  }
}

namespace {

// Open-addressing map from node to node that keeps both alive.
class NodeTable {
 public:
  const UOp* find(const Node* key) const {
    const Entry& e = entries_[slot_of(key)];
    return e.key ? &e.value : nullptr;
  }
  void insert(const UOp& key, const UOp& value) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    Entry& e = entries_[slot_of(key.get())];
    if (!e.key) used_++;
    e = {key, value};
  }

 private:
  struct Entry {
    UOp key, value;
  };
  size_t slot_of(const Node* key) const {
    const size_t mask = entries_.size() - 1;
    size_t i = (key->hash ^ (key->hash >> 29)) & mask;
    while (entries_[i].key && entries_[i].key.get() != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (Entry& e : old) {
      if (e.key) entries_[slot_of(e.key.get())] = std::move(e);
    }
  }
  std::vector<Entry> entries_{64};
  size_t used_ = 0;
};

class Rewriter {
 public:
  Rewriter(const RuleSet& rules, RewriteCache* cache) : rules_(rules), cache_(cache) {}
  UOp run(const UOp& root);

 private:
  struct Frame {
    UOp origin;      // what the caller asked for
    UOp node;        // the same with rewritten sources
    UOp next;        // what a rule made of it, still to be rewritten
    uint32_t depth;  // rules applied on the way here
  };
  const UOp* known(const UOp& u);
  bool push_sources(size_t frame);
  void step();
  void finish(const UOp& result);
  const RuleSet& rules_;
  RewriteCache* cache_;
  NodeTable table_;
  std::vector<Frame> stack_;
  std::vector<UOp> sources_;
};

// The result for u if it is there already. Leaves that no rule looks at are their own results.
const UOp* Rewriter::known(const UOp& u) {
  if (u->src_count == 0 && !rules_.has_rules_for(u->op)) return &u;
  if (u->op == Op::Range || u->op == Op::Special) return &u;
  if (const UOp* r = table_.find(u.get())) return r;
  if (!cache_) return nullptr;
  const UOp r = cache_->find(u);
  if (!r) return nullptr;
  table_.insert(u, r);
  return table_.find(u.get());
}

// Pushes what is not yet rewritten among the sources; otherwise sets the frame's node.
bool Rewriter::push_sources(size_t frame) {
  const UOp origin = stack_[frame].origin;
  const uint32_t depth = stack_[frame].depth;
  sources_.clear();
  for (const UOp& s : origin->src()) {
    const UOp* r = known(s);
    if (r) {
      sources_.push_back(*r);
    } else {
      stack_.push_back({s, {}, {}, depth});
    }
  }
  if (stack_.size() > frame + 1) return true;
  stack_[frame].node = with_src(origin, sources_);
  return false;
}

void Rewriter::finish(const UOp& result) {
  const Frame& f = stack_.back();
  table_.insert(f.origin, result);
  if (f.node && !(f.node == f.origin)) table_.insert(f.node, result);
  if (cache_) {
    cache_->insert(f.origin, result);
    if (!(result == f.origin)) cache_->insert(result, result);
  }
  stack_.pop_back();
}

void Rewriter::step() {
  const size_t top = stack_.size() - 1;
  if (const UOp* r = table_.find(stack_[top].origin.get())) {
    if (!stack_[top].next) return stack_.pop_back();  // a frame pushed twice before it was done
    return finish(UOp(*r));
  }
  if (stack_[top].next) {
    if (const UOp* r = known(stack_[top].next)) return finish(UOp(*r));
    stack_.push_back({stack_[top].next, {}, {}, stack_[top].depth + 1});
    return;
  }
  if (push_sources(top)) return;
  const UOp node = stack_[top].node;
  if (!(node == stack_[top].origin)) {
    if (const UOp* r = known(node)) return finish(UOp(*r));
  }
  const char* rule = nullptr;
  UOp next = rules_.apply(node, &rule);
  if (!next) {
    table_.insert(node, node);
    return finish(node);
  }
  TUFF_CHECK(stack_[top].depth < kMaxRewrites, "{}: rule {} does not come to an end at {}",
             rules_.name(), rule, expression(node));
  stack_[top].next = std::move(next);
}

UOp Rewriter::run(const UOp& root) {
  if (const UOp* r = known(root)) return *r;
  stack_.push_back({root, {}, {}, 0});
  while (!stack_.empty()) step();
  const UOp* r = known(root);
  return r ? *r : root;
}

}  // namespace

UOp rewrite(const UOp& root, const RuleSet& rules, RewriteCache* cache) {
  return Rewriter(rules, cache).run(root);
}

}  // namespace tuff::ir
