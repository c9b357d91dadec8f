// Rewriter: the loop behind rewrite() and simplify(). Called by rewrite.cpp and symbolic.cpp alone.
// Must never know what the rules mean.
#pragma once

#include <vector>

#include "ir/pattern.h"

namespace tuff::ir {

// Results that outlive one call; simplify() has one.
class RewriteCache {
 public:
  virtual ~RewriteCache() = default;
  virtual UOp find(const UOp& u) = 0;  // empty if unknown
  virtual void insert(const UOp& u, const UOp& result) = 0;
};

// Open-addressing map from node to node that keeps both alive.
class NodeTable {
 public:
  NodeTable();
  const UOp* find(const Node* key) const;
  void insert(const UOp& key, const UOp& value);

 private:
  struct Entry {
    UOp key, value;
  };
  size_t slot_of(const Node* key) const;
  void grow();
  std::vector<Entry> entries_;
  size_t used_ = 0;
};

class Rewriter {
 public:
  // With keep_ranges, Range and Special are leaves: a loop's counter stays the node that its loop
  // knows.
  explicit Rewriter(const RuleSet& rules, RewriteCache* cache = nullptr, bool keep_ranges = false)
      : rules_(rules), cache_(cache), keep_ranges_(keep_ranges) {}
  UOp run(const UOp& root);

 private:
  struct Frame {
    UOp origin;  // what the caller asked for
    UOp node;    // the same with rewritten sources
    UOp next;    // what a rule made of it, still to be rewritten
    const char* rule;
    uint32_t depth;  // rules applied on the way here
  };
  const UOp* known(const UOp& u);
  bool push_sources(size_t frame);
  void step();
  void finish(const UOp& result);
  const RuleSet& rules_;
  RewriteCache* cache_;
  bool keep_ranges_;
  NodeTable table_;
  std::vector<Frame> stack_;
  std::vector<UOp> sources_;
};

}  // namespace tuff::ir
