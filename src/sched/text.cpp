// LINEAR as text.
#include <unordered_map>

#include "ir/custom_kernel.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "sched/schedule.h"

namespace tuff::sched {
namespace {

using namespace ir;

std::string slot_text(const Schedule& s, uint32_t slot) {
  const BufferSlot& b = s.buffers[slot];
  switch (b.origin) {
    case BufferOrigin::Input: return fmt::format("in{}", b.index);
    case BufferOrigin::Output: return fmt::format("out{}", b.index);
    case BufferOrigin::Part:
    case BufferOrigin::Temp: return fmt::format("t{}", slot);
  }
  return "?";
}

std::string ranges_text(const UOp& n) {
  std::string out;
  for (const UOp& r : n->src().subspan(1)) {
    const bool ordered = r->get<RangeArg>().kind == AxisKind::Ordered;
    out += fmt::format("{}r{}:{}{}", out.empty() ? "" : " ", r->get<RangeArg>().id,
                       expression(r->src(0)), ordered ? " in order" : "");
  }
  return out;
}

// One kernel's stores; values used more than once get a line of their own.
class KernelText {
 public:
  explicit KernelText(const UOp& ast) : ast_(ast) {
    for (const Node* n : toposort(ast)) {
      for (const UOp& s : n->src()) uses_[s.get()]++;
    }
  }

  std::string run() {
    for (const UOp& end : ast_->src()) store(end);
    return std::move(out_);
  }

 private:
  void store(const UOp& end) {
    const UOp& store = end->src(0);
    const std::string ranges = ranges_text(end), value = text(store->src(1));
    out_ += fmt::format("    {}{}{} = {}\n", ranges, ranges.empty() ? "" : ": ",
                        element(store->src(0)), value);
  }
  // Data-dependent offsets are rare and printed as values; the rest are index expressions.
  std::string element(const UOp& index) {
    std::string out = fmt::format("{}[{}", memory(index->src(0)), expression(index->src(1)));
    if (index->src_count > 2) out += " if " + expression(index->src(2));
    return out + "]";
  }

  // A kept row is filled where it is first read.
  std::string memory(const UOp& u) {
    if (u->op == Op::Param) return fmt::format("p{}", u->get<ParamArg>().slot);
    if (u->op == Op::Shared) return fmt::format("s{}", u->get<SharedArg>().number);
    if (u->src(1)->op == Op::End && names_.emplace(u.get(), "").second) store(u->src(1));
    return memory(u->src(0));
  }

  std::string text(const UOp& u) {
    if (auto it = names_.find(u.get()); it != names_.end()) return it->second;
    std::string s = spelled(u);
    const bool is_value =
        u->op == Op::Reduce || (u->op != Op::Load && u->src_count > 0 && u->dtype != DType::Index);
    if (!is_value || uses_[u.get()] < 2) return s;
    const std::string name = fmt::format("v{}", names_.size());
    out_ += fmt::format("    {} = {}\n", name, s);
    names_.emplace(u.get(), name);
    return name;
  }

  std::string spelled(const UOp& u) {
    if (u->op == Op::Load) return element(u->src(0));
    if (u->op == Op::Reduce)
      return fmt::format("{}_reduce({}; {})", name(u->get<ReduceArg>().op), text(u->src(0)),
                         ranges_text(u));
    if (u->dtype == DType::Index || u->src_count == 0) return expression(u);
    std::string args;
    for (const UOp& s : u->src()) args += (args.empty() ? "" : ", ") + text(s);
    const std::string op =
        u->op == Op::Cast ? fmt::format("cast.{}", short_name(u->dtype)) : std::string(name(u->op));
    return fmt::format("{}({})", op, args);
  }

  const UOp ast_;
  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, std::string> names_;
  std::string out_;
};

}  // namespace

// Which reductions are made in parts; one line per call with its buffers; below the first call of
// each kernel its stores, one per line.
std::string to_text(const Schedule& s) {
  std::string out;
  for (const std::string& p : s.parts) out += p + "\n";
  std::unordered_map<const Node*, int> kernels;
  for (const Call& c : s.calls) {
    std::string args;
    for (size_t k = 0; k < c.args.size(); k++)
      args += (k == 0 ? "" : k == c.output_count ? " <- " : " ") + slot_text(s, c.args[k]);
    if (!c.runs.is_const()) args += " times " + expression(c.runs.uop());
    if (c.kind == CallKind::Kernel) {
      const auto [it, fresh] = kernels.emplace(c.ast.get(), int(kernels.size()));
      out += fmt::format("kernel k{} {}\n", it->second, args);
      if (fresh) out += KernelText(c.ast).run();
    } else if (c.kind == CallKind::Custom) {
      out += fmt::format("custom {} {}\n", c.ast->get<CustomKernelArg>().kernel->name, args);
    } else if (c.kind == CallKind::Copy) {
      out += fmt::format("copy {}\n", args);
    } else {
      out += fmt::format("view {} +{} bytes\n", args, c.byte_offset);
    }
  }
  return out;
}

}  // namespace tuff::sched
