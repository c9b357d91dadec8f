#include "ir/rewrite.h"

#include "ir/text.h"

namespace tuff::ir {
namespace {

constexpr uint32_t kMaxRewrites = 1000;
constexpr size_t kFirstEntries = 64;

}  // namespace

NodeTable::NodeTable() : entries_(kFirstEntries) {}

size_t NodeTable::slot_of(const Node* key) const {
  const size_t mask = entries_.size() - 1;
  size_t i = (key->hash ^ (key->hash >> 29)) & mask;
  while (entries_[i].key && entries_[i].key.get() != key) i = (i + 1) & mask;
  return i;
}

const UOp* NodeTable::find(const Node* key) const {
  const Entry& e = entries_[slot_of(key)];
  return e.key ? &e.value : nullptr;
}

void NodeTable::insert(const UOp& key, const UOp& value) {
  if (2 * (used_ + 1) > entries_.size()) grow();
  Entry& e = entries_[slot_of(key.get())];
  if (!e.key) used_++;
  e = {key, value};
}

void NodeTable::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (Entry& e : old) {
    if (e.key) entries_[slot_of(e.key.get())] = std::move(e);
  }
}

// The result for u if it is there already. Leaves that no rule looks at are their own results.
const UOp* Rewriter::known(const UOp& u) {
  if (u->src_count == 0 && !rules_.has_rules_for(u->op)) return &u;
  if (keep_ranges_ && (u->op == Op::Range || u->op == Op::Special)) return &u;
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
      stack_.push_back({s, {}, {}, nullptr, depth});
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
    stack_.push_back({stack_[top].next, {}, {}, nullptr, stack_[top].depth + 1});
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
  stack_[top].rule = rule;
  stack_[top].next = std::move(next);
}

UOp Rewriter::run(const UOp& root) {
  if (const UOp* r = known(root)) return *r;
  stack_.push_back({root, {}, {}, nullptr, 0});
  while (!stack_.empty()) step();
  const UOp* r = known(root);
  return r ? *r : root;
}

UOp rewrite(const UOp& root, const RuleSet& rules) { return Rewriter(rules).run(root); }

}  // namespace tuff::ir
