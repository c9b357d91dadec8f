// Printing of the text form. Args spell their own kind, so that parse.cpp needs no table of ops:
//   5   [0, 2]   (4, %1)   <1:2 0:%3>   add [0]   r3 loop   "n" 1..8   slot 0 count 8 "CPU"
//   special g0   shared 0 count 64   on "CPU" axis -1   storage 1 count 8 "CPU"   f32 0.5
#include "ir/text.h"

#include <cmath>
#include <unordered_map>

#include "ir/custom_kernel.h"
#include "ir/gradient.h"

namespace tuff::ir {
namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

// The number if it reads back as the same bits, else the bits (NaNs with a payload).
std::string scalar_text(const Scalar& v) {
  if (v.dtype == DType::U64) return fmt::format("{}", v.bits);
  if (!is_float(v.dtype)) return fmt::format("{}", v.as_int());
  const double d = v.as_double();
  if (std::isnan(d)) return fmt::format("bits 0x{:x}", v.bits);
  return fmt::format("{}", d);
}

std::string list_text(const IntVec& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

// The order of nodes and their numbers. Symbolic extents inside args count as sources.
class Listing {
 public:
  void add_all(const UOp& root);
  void add_one(const Node* n) {
    numbers_.emplace(n, order_.size());
    order_.push_back(n);
  }
  std::string print() const;

 private:
  static void extents(const Node& n, std::vector<UOp>& out);
  std::string number(const Node* n) const;
  std::string dim(const Dim& d) const {
    return d.is_const() ? fmt::format("{}", d.value()) : number(d.uop().get());
  }
  std::string arg(const Node& n) const;
  std::string line(const Node& n) const;
  std::vector<const Node*> order_;
  std::unordered_map<const Node*, size_t> numbers_;
};

void Listing::extents(const Node& n, std::vector<UOp>& out) {
  auto add = [&](const Dim& d) {
    if (!d.is_const()) out.push_back(d.uop());
  };
  if (const Shape* s = std::get_if<Shape>(&n.arg)) {
    for (const Dim& d : *s) add(d);
  }
  if (const Pairs* p = std::get_if<Pairs>(&n.arg)) {
    for (const DimPair& pair : *p) {
      add(pair.a);
      add(pair.b);
    }
  }
  if (const LoopArg* l = std::get_if<LoopArg>(&n.arg)) add(l->steps);
}

void Listing::add_all(const UOp& root) {
  struct Frame {
    const Node* node;
    std::vector<UOp> below;
    size_t next;
  };
  std::vector<Frame> stack;
  auto push = [&](const Node* n) {
    if (numbers_.contains(n)) return;
    std::vector<UOp> below(n->src().begin(), n->src().end());
    extents(*n, below);
    stack.push_back({n, std::move(below), 0});
  };
  push(root.get());
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next < f.below.size()) {
      push(f.below[f.next++].get());
    } else {
      if (!numbers_.contains(f.node)) add_one(f.node);
      stack.pop_back();
    }
  }
}

// A node that a linear list lacks is written in full where it is used, without a number.
std::string Listing::number(const Node* n) const {
  auto at = numbers_.find(n);
  return at == numbers_.end() ? fmt::format("<{}>", expression(UOp(n)))
                              : fmt::format("%{}", at->second);
}

std::string Listing::arg(const Node& n) const {
  struct Visitor {
    const Listing& l;
    const Node& n;
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(const Scalar& v) const {
      return n.op == Op::Const ? scalar_text(v)
                               : fmt::format("{} {}", short_name(v.dtype), scalar_text(v));
    }
    std::string operator()(const IntVec& v) const { return list_text(v); }
    std::string operator()(const Shape& v) const {
      std::vector<std::string> dims;
      for (const Dim& d : v) dims.push_back(l.dim(d));
      return fmt::format("({})", fmt::join(dims, ", "));
    }
    std::string operator()(const Pairs& v) const {
      std::vector<std::string> pairs;
      for (const DimPair& p : v) pairs.push_back(l.dim(p.a) + ":" + l.dim(p.b));
      return fmt::format("<{}>", fmt::join(pairs, " "));
    }
    std::string operator()(const ReduceArg& v) const {
      return fmt::format("{} {}", name(v.op), list_text(v.axes));
    }
    std::string operator()(const ScatterArg& v) const {
      return fmt::format("by {} axis {} {}", name(v.op), v.axis, name(v.named));
    }
    std::string operator()(const LoopArg& v) const {
      std::vector<UOp> nodes = v.body->places;
      nodes.insert(nodes.end(), v.body->next.begin(), v.body->next.end());
      return fmt::format("steps {} {} rows {} states {} sequences {} body {}",
                         l.dim(v.steps), v.reverse ? "backwards" : "forwards", v.rows,
                         v.body->next.size(), v.body->sequences, quoted(to_text(sink(nodes))));
    }
    std::string operator()(const CustomKernelArg& v) const {
      std::string out = fmt::format("kernel {} {:016x} groups {}x{}x{}", quoted(v.kernel->name),
                                    content_hash(*v.kernel), v.groups[0], v.groups[1], v.groups[2]);
      for (const CustomOutput& o : v.outputs)
        out += fmt::format(" {} {}", short_name(o.dtype), list_text(o.shape));
      return v.number == kWholeKernel ? out : out + fmt::format(" output {}", v.number);
    }
    std::string operator()(const Ref<History>& v) const {
      return v->computed ? "history" : "lost history";
    }
    std::string operator()(const GradientRule* v) const { return fmt::format("rule {}", v->name); }
    std::string operator()(const RangeArg& v) const {
      return fmt::format("r {} {}", v.id, name(v.kind));
    }
    std::string operator()(const VariableArg& v) const {
      return fmt::format("{} {}..{}", quoted(v.name), v.min, v.max);
    }
    std::string operator()(const ParamArg& v) const {
      return fmt::format("slot {} count {}{}", v.slot, v.count,
                         v.device.empty() ? "" : " " + quoted(v.device));
    }
    std::string operator()(const SpecialArg& v) const {
      return fmt::format("special {} {}", v.space, int(v.axis));
    }
    std::string operator()(const SharedArg& v) const {
      return fmt::format("shared {} count {}", v.number, v.count);
    }
    std::string operator()(const MatrixArg& v) const {
      const std::string order = v.by_columns      ? "columns"
                                : v.interleaved > 1 ? fmt::format("rows interleaved {}", v.interleaved)
                                                    : "rows";
      return fmt::format("matrix {} {} {} stride {} {} number {}", name(v.use), v.rows, v.columns,
                         v.stride, order, v.number);
    }
    std::string operator()(const Placement& v) const {
      std::string out = "on";
      for (const std::string& d : v.devices) out += " " + quoted(d);
      return out + fmt::format(" axis {}", v.shard_axis);
    }
    std::string operator()(const Ref<Storage>& s) const {
      return fmt::format("storage {} count {} {}", s->id, s->count, quoted(s->device));
    }
  };
  return std::visit(Visitor{*this, n}, n.arg);
}

std::string Listing::line(const Node& n) const {
  std::string out = fmt::format("%{} = {}", numbers_.at(&n), name(n.op));
  if (n.arg.index() != 0) out += "{" + arg(n) + "}";
  out += fmt::format(" {}", short_name(n.dtype));
  if (!n.shape.empty()) out += " " + to_string(n.shape);
  for (const UOp& s : n.src()) out += " " + number(s.get());
  return out + "\n";
}

std::string Listing::print() const {
  std::string out;
  for (const Node* n : order_) out += line(*n);
  return out;
}

}  // namespace

std::string to_text(std::span<const UOp> roots) {
  Listing l;
  for (const UOp& r : roots) l.add_all(r);
  return l.print();
}
std::string to_text(const UOp& root) { return to_text(std::span<const UOp>(&root, 1)); }

std::string list_to_text(std::span<const UOp> list) {
  Listing l;
  for (const UOp& u : list) l.add_one(u.get());
  return l.print();
}

}  // namespace tuff::ir
