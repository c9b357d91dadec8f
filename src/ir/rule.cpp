#include "ir/rule.h"

#include <algorithm>
#include <atomic>

#include "ir/walk.h"

namespace tuff::ir {
namespace {

// Slots of places. Those of rules count from kFirst, so that equal rules are equal nodes; a place
// that no rule has yet has a slot of its own above kUnique. Rules may lie in the bodies of loops.
constexpr int32_t kFirst = 1 << 20, kOfBodies = 1 << 28, kUnique = 1 << 30;

UOp place(int32_t slot, DType t, const Shape& shape, const std::string& device) {
  const UOp one = param(slot, t, 1, device);
  const Shape ones(shape.size(), Dim(1));
  return make(Op::Detach, t, {expand(reshape(one, ones), shape)});
}
UOp place(int32_t slot, const UOp& value) {
  return place(slot, value->dtype, value->shape, device_of(value));
}

// A Rule's places have slots that no Rule below it has: what is put in their place is put in no
// other's. Rules know this of all that is below them.
int32_t free_slot(const RuleParts& parts) {
  std::vector<UOp> below = parts.values;
  below.insert(below.end(), parts.arguments.begin(), parts.arguments.end());
  for (const UOp& g : parts.gradients)
    if (g) below.push_back(g);
  int64_t slot = kFirst;
  for (const Node* n : toposort_gated(below, [](const Node* n) { return n->op != Op::Ruled; })) {
    if (n->op != Op::Ruled) continue;
    const auto& arg = n->src(1)->get<IntVec>();
    slot = std::max(slot, arg[2] + arg[0]);
  }
  TUFF_CHECK(slot + int64_t(parts.values.size()) < kOfBodies, "functions within functions: {}", slot);
  return int32_t(slot);
}

}  // namespace

UOp place_like(const UOp& value) { return place_of(value->dtype, value->shape, device_of(value)); }
UOp place_of(DType t, const Shape& shape, const std::string& device) {
  static std::atomic<int32_t> next{0};
  return place(kUnique + (next.fetch_add(1) & (kUnique - 1)), t, shape, device);
}

UOp body_place(int32_t number, DType t, const Shape& shape, const std::string& device) {
  return place(kOfBodies + number, t, shape, device);
}

RuleParts parts_of(const Node& rule) {
  const auto& arg = rule.get<IntVec>();
  const auto values = rule.src().first(size_t(arg[0])), arguments = arguments_of(rule),
             gradients = rule.src().last(arg.size() - 3);
  RuleParts out{{values.begin(), values.end()}, {arguments.begin(), arguments.end()}, {}, {}};
  for (size_t i = 0; i < values.size(); i++)
    out.places.push_back(place(int32_t(arg[2] + int64_t(i)), values[i]));
  out.gradients.resize(arguments.size());
  for (size_t k = 0; k < gradients.size(); k++) out.gradients[size_t(arg[k + 3])] = gradients[k];
  return out;
}

std::vector<UOp> ruled(const RuleParts& parts) {
  const int32_t slot = free_slot(parts);
  UOpMap<UOp> places;
  for (const UOp& x : parts.arguments) places.emplace(x, x);
  for (size_t i = 0; i < parts.places.size(); i++)
    places[parts.places[i]] = place(slot + int32_t(i), parts.values[i]);
  IntVec arg{int64_t(parts.values.size()), int64_t(parts.arguments.size()), slot};
  std::vector<UOp> given, src = parts.values;
  for (size_t k = 0; k < parts.gradients.size(); k++) {
    if (!parts.gradients[k]) continue;
    arg.push_back(int64_t(k));
    given.push_back(parts.gradients[k]);
  }
  src.insert(src.end(), parts.arguments.begin(), parts.arguments.end());
  for (UOp& g : substitute(given, places)) src.push_back(std::move(g));
  const UOp rule = make(Op::Rule, DType::Void, src, arg);
  std::vector<UOp> out;
  for (size_t i = 0; i < parts.values.size(); i++)
    out.push_back(make(Op::Ruled, DType::Void, {parts.values[i], rule}, int64_t(i)));
  return out;
}

std::span<const UOp> arguments_of(const Node& rule) {
  const auto& arg = rule.get<IntVec>();
  return rule.src().subspan(size_t(arg[0]), size_t(arg[1]));
}

std::vector<UOp> gradients_by_rule(const UOp& rule, std::span<const UOp> of_values) {
  const auto& arg = rule->get<IntVec>();
  const auto arguments = arguments_of(*rule);
  UOpMap<UOp> map;
  for (const UOp& x : arguments) map.emplace(x, x);
  for (size_t i = 0; i < of_values.size(); i++) {
    const UOp& value = rule->src(i);
    const Shape ones(value->shape.size(), Dim(1));
    const UOp zero = expand(reshape(constant(value->dtype, 0), ones), value->shape);
    map[place(int32_t(arg[2] + int64_t(i)), value)] = of_values[i] ? of_values[i] : zero;
    // A value that the gradient is made of has this rule for its own gradient.
    if (value->device) map.emplace(value, make(Op::Ruled, DType::Void, {value, rule}, int64_t(i)));
  }
  const std::vector<UOp> made =
      substitute(rule->src().last(arg.size() - 3), map);
  std::vector<UOp> out(arguments.size());
  for (size_t k = 0; k < made.size(); k++) out[size_t(arg[k + 3])] = made[k];
  return out;
}

std::vector<UOp> values_alone(std::span<const UOp> roots) {
  std::vector<const Node*> order = toposort(roots);
  const auto is_said = [](const Node* n) {
    return n->op == Op::Mark || n->op == Op::Checkpoint || n->op == Op::Ruled;
  };
  if (std::ranges::none_of(order, is_said)) return {roots.begin(), roots.end()};
  // Not below what only gradients ask for.
  UOpMap<UOp> mapped;
  std::vector<const Node*> stack;
  std::vector<UOp> src;
  for (const UOp& root : roots) stack.push_back(root.get());
  while (!stack.empty()) {
    const Node* n = stack.back();
    const UOp u(n);
    if (mapped.contains(u)) {
      stack.pop_back();
      continue;
    }
    const auto sources = is_said(n) ? n->src().first(1) : n->src();
    src.clear();
    bool ready = true;
    for (const UOp& s : sources) {
      const auto it = mapped.find(s);
      if (it == mapped.end()) stack.push_back(s.get());
      ready = ready && it != mapped.end();
      if (ready) src.push_back(it->second);
    }
    if (!ready) continue;
    stack.pop_back();
    mapped.emplace(u, is_said(n) ? src[0] : with_src(u, src));
  }
  std::vector<UOp> out;
  for (const UOp& root : roots) out.push_back(mapped.at(root));
  return out;
}

bool has_place(std::span<const UOp> roots) {
  return std::ranges::any_of(toposort(roots), [](const Node* n) {
    return n->op == Op::Param && n->get<ParamArg>().slot >= kFirst;
  });
}

}  // namespace tuff::ir
