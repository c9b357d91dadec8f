#include "text/grammar/automaton.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <utility>

#include "base/check.h"

namespace tuff::text::grammar {
namespace {

using Node = AutomatonNode;

constexpr size_t kMaxNodes = size_t{1} << 20;
constexpr uint64_t kMaxSteps = uint64_t{1} << 26;  // of the search for left recursion
constexpr uint32_t kReturn = 0;  // one node for all rules

// Characters of one range that have one length, and whose bytes behind the first differing one are
// any: such a range is one sequence of byte ranges.
struct ByteRanges {
  std::array<std::pair<uint8_t, uint8_t>, 4> bytes;
  size_t size = 0;
};

ByteRanges byte_ranges(uint32_t first, uint32_t last, size_t size) {
  static constexpr uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  ByteRanges out{.bytes = {}, .size = size};
  for (size_t i = size; i-- > 1; first >>= 6, last >>= 6)
    out.bytes[i] = {uint8_t(0x80 | (first & 0x3f)), uint8_t(0x80 | (last & 0x3f))};
  out.bytes[0] = {uint8_t(kLead[size] | first), uint8_t(kLead[size] | last)};
  return out;
}

// Cuts where the bytes behind a differing one are not all from 0x80 to 0xbf.
void add_byte_ranges(uint32_t first, uint32_t last, size_t size, std::vector<ByteRanges>& out) {
  for (size_t low = 1; low < size; low++) {
    const uint32_t mask = (uint32_t{1} << (6 * low)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      add_byte_ranges(first, first | mask, size, out);
      return add_byte_ranges((first | mask) + 1, last, size, out);
    }
    if ((last & mask) != mask) {
      add_byte_ranges(first, (last & ~mask) - 1, size, out);
      return add_byte_ranges(last & ~mask, last, size, out);
    }
  }
  out.push_back(byte_ranges(first, last, size));
}

std::vector<ByteRanges> byte_ranges_of(const CharacterRange& range) {
  struct Part {
    uint32_t first, last;
    size_t size;
  };
  static constexpr Part kParts[] = {
      {0, 0x7f, 1}, {0x80, 0x7ff, 2}, {0x800, 0xd7ff, 3}, {0xe000, 0xffff, 3},
      {0x10000, kLastCharacter, 4}};
  std::vector<ByteRanges> out;
  for (const Part& p : kParts) {
    const uint32_t first = std::max(range.first, p.first), last = std::min(range.last, p.last);
    if (first <= last) add_byte_ranges(first, last, p.size, out);
  }
  return out;
}

class Builder {
 public:
  explicit Builder(const Rules& rules) : rules_(rules), starts_(rules.rows.size()) {
    add({.kind = Node::Kind::Return});
  }
  Automaton build() {
    // Rules call each other, so their places come first.
    for (auto& start : starts_) start = add({.kind = Node::Kind::Fork});
    for (size_t i = 0; i < starts_.size(); i++) {
      const uint32_t body = before(rules_.rows[i].body, kReturn);
      out_.nodes[starts_[i]].next = out_.nodes[starts_[i]].other = body;
    }
    out_.start = starts_[rules_.root];
    find_classes();
    return std::move(out_);
  }
  const std::vector<uint32_t>& starts() const { return starts_; }

 private:
  uint32_t add(Node node) {
    if (out_.nodes.size() >= kMaxNodes)
      fail<InvalidArgument>("the grammar is too large: it takes more than {} nodes", kMaxNodes);
    out_.nodes.push_back(node);
    return uint32_t(out_.nodes.size() - 1);
  }
  uint32_t fork(uint32_t a, uint32_t b) {
    return add({.kind = Node::Kind::Fork, .next = a, .other = b});
  }
  uint32_t call(uint32_t rule, uint32_t next) {
    return add({.kind = Node::Kind::Call, .next = next, .other = rule});
  }
  // The node where `e` begins, behind which `next` follows; none where there is no text of it.
  uint32_t before(const Expression& e, uint32_t next) {
    switch (e.kind) {
      case Expression::Kind::Characters: return characters_before(e, next);
      case Expression::Kind::Rule: return call(starts_[e.rule], next);
      case Expression::Kind::Repetition: return repetition_before(e, next);
      case Expression::Kind::Sequence:
        for (size_t i = e.parts.size(); i-- > 0;) next = before(e.parts[i], next);
        return next;
      case Expression::Kind::Choice: break;
    }
    uint32_t at = before(e.parts.back(), next);
    for (size_t i = e.parts.size() - 1; i-- > 0;) at = fork(before(e.parts[i], next), at);
    return at;
  }
  uint32_t characters_before(const Expression& e, uint32_t next) {
    std::optional<uint32_t> at;
    for (const CharacterRange& range : e.ranges) {
      for (const ByteRanges& r : byte_ranges_of(range)) {
        uint32_t from = next;
        for (size_t i = r.size; i-- > 0;)
          from = add({.kind = Node::Kind::Bytes,
                      .first = r.bytes[i].first,
                      .last = r.bytes[i].second,
                      .next = from});
        at = at ? fork(from, *at) : from;
      }
    }
    if (!at) fail<InvalidArgument>("a grammar's set of characters has none");
    return *at;
  }
  uint32_t repetition_before(const Expression& e, uint32_t next) {
    const Expression& part = e.parts[0];
    if (e.most == 0) return next;
    const bool twice = e.least > 1 || (e.most != kUnbounded && e.most > 1);
    // What stands there often is called like a rule.
    const bool calls = twice && part.kind != Expression::Kind::Rule;
    const uint32_t body = calls ? before(part, kReturn) : 0;
    const auto once = [&](uint32_t then) { return calls ? call(body, then) : before(part, then); };
    uint32_t at = next;
    if (e.most == kUnbounded) {
      at = fork(0, next);
      const uint32_t begin = once(at);
      out_.nodes[at].next = begin;
    } else {
      for (uint32_t i = e.least; i < e.most; i++) at = fork(once(at), next);
    }
    for (uint32_t i = 0; i < e.least; i++) at = once(at);
    return at;
  }
  void find_classes() {
    std::bitset<257> begins;
    for (const Node& n : out_.nodes)
      if (n.kind == Node::Kind::Bytes) begins.set(n.first), begins.set(size_t(n.last) + 1);
    uint32_t at = 0;
    for (size_t b = 0; b < 256; b++) {
      if (b > 0 && begins[b]) at++;
      out_.class_of[b] = uint8_t(at);
    }
    out_.classes = at + 1;
  }

  const Rules& rules_;
  std::vector<uint32_t> starts_;
  Automaton out_;
};

// Looks for rules that begin with themselves: they would be called without end before a byte is
// read.
class LeftRecursion {
 public:
  LeftRecursion(const Automaton& automaton, const Rules& rules, std::vector<uint32_t> starts)
      : nodes_(automaton.nodes), rules_(rules), starts_(std::move(starts)),
        walk_of_(nodes_.size()) {
    for (size_t i = 0; i < nodes_.size(); i++) {
      if (nodes_[i].kind == Node::Kind::Call) number(nodes_[i].other);
    }
    number(automaton.start);
  }
  void refuse() {
    find_empty();
    std::vector<std::vector<size_t>> begins(routines_.size());
    for (size_t r = 0; r < routines_.size(); r++) begins[r] = first_calls(routines_[r], nullptr);
    enum : uint8_t { New, Open, Done };
    std::vector<uint8_t> seen(routines_.size(), New);
    std::vector<std::pair<size_t, size_t>> path;  // a routine, and how many of its calls were followed
    for (size_t root = 0; root < routines_.size(); root++) {
      if (seen[root] == New) path.emplace_back(root, 0), seen[root] = Open;
      while (!path.empty()) {
        auto& [r, followed] = path.back();
        if (followed == begins[r].size()) {
          seen[r] = Done;
          path.pop_back();
          continue;
        }
        const size_t to = begins[r][followed++];
        if (seen[to] == Open) fail_with(to, path);
        if (seen[to] == New) path.emplace_back(to, 0), seen[to] = Open;
      }
    }
  }

 private:
  void number(uint32_t start) {
    if (index_.empty()) index_.resize(nodes_.size(), kNone);
    if (index_[start] != kNone) return;
    index_[start] = routines_.size();
    routines_.push_back(start);
  }
  // The routines that are called before a byte was read; `returns`: whether none need be.
  std::vector<size_t> first_calls(uint32_t start, bool* returns) {
    std::vector<size_t> calls;
    std::vector<uint32_t> open;
    const auto visit = [&, seen = ++walks_](uint32_t node) {
      if (std::exchange(walk_of_[node], seen) != seen) open.push_back(node);
    };
    visit(start);
    while (!open.empty()) {
      const Node& n = nodes_[open.back()];
      open.pop_back();
      if (++steps_ > kMaxSteps)
        fail<InvalidArgument>("the grammar is too large: too many of its rules may be empty");
      if (n.kind == Node::Kind::Return && returns) *returns = true;
      if (n.kind == Node::Kind::Fork) visit(n.next), visit(n.other);
      if (n.kind != Node::Kind::Call) continue;
      calls.push_back(index_[n.other]);
      if (empty_.at(index_[n.other])) visit(n.next);
    }
    return calls;
  }
  // Which routines may read nothing.
  void find_empty() {
    empty_.assign(routines_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t r = routines_.size(); r-- > 0;) {
        bool returns = false;
        if (!empty_[r]) first_calls(routines_[r], &returns);
        if (returns) empty_[r] = changed = true;
      }
    }
  }
  [[noreturn]] void fail_with(size_t routine,
                              const std::vector<std::pair<size_t, size_t>>& path) const {
    // A routine without a name belongs to one that has: some of the path's.
    std::string name = "a rule";
    for (const auto& [r, followed] : path) {
      const auto at = std::ranges::find(starts_, routines_[r]);
      if (at != starts_.end()) name = rules_.rows[size_t(at - starts_.begin())].name;
      if (r == routine && at != starts_.end()) break;
    }
    fail<InvalidArgument>(
        "{} begins with itself (left recursion): write what repeats as (...)*, or at the end", name);
  }

  static constexpr size_t kNone = ~size_t{0};
  const std::vector<Node>& nodes_;
  const Rules& rules_;
  std::vector<uint32_t> starts_;
  std::vector<uint32_t> routines_;  // where they begin
  std::vector<size_t> index_;       // by node, of those
  std::vector<bool> empty_;         // by routine
  std::vector<uint64_t> walk_of_;   // by node, the last walk that has come by
  uint64_t walks_ = 0, steps_ = 0;
};

}  // namespace

Automaton build_automaton(const Rules& rules) {
  Builder builder(rules);
  Automaton out = builder.build();
  LeftRecursion(out, rules, builder.starts()).refuse();
  return out;
}

}  // namespace tuff::text::grammar
