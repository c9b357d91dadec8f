#include "check/graph_case.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

Bindings bindings_of(const GraphCase& c) {
  Bindings b;
  for (const GraphInput& in : c.inputs) {
    auto* bytes = const_cast<std::byte*>(in.bytes.data());  // interpret() alone writes, to a copy
    b.storages[in.storage->id] = std::span(bytes, in.bytes.size());
  }
  b.variables = c.variables;
  return b;
}

GraphCase with_used_inputs(GraphCase c) {
  std::set<uint64_t> used;
  for (const Node* n : toposort(c.sinks)) {
    if (n->op == Op::Buffer) used.insert(n->get<Ref<Storage>>()->id);
  }
  std::erase_if(c.inputs, [&](const GraphInput& in) { return !used.count(in.storage->id); });
  return c;
}

int64_t node_count(const GraphCase& c) { return int64_t(toposort(c.sinks).size()); }

const Node* without_reshapes(const Node* n) {
  while (n->op == Op::Reshape) n = n->src(0).get();
  return n;
}

uint64_t storage_id(const Node* n) {
  while (n->op != Op::Buffer) n = n->src(0).get();
  return n->get<Ref<Storage>>()->id;
}

GraphCase placed(const GraphCase& c, const std::string& device,
                 const std::function<Ref<Storage>(const Storage&)>& make_storage) {
  GraphCase out{{}, {}, c.variables, c.seed};
  std::unordered_map<uint64_t, Ref<Storage>> there;
  for (const GraphInput& in : c.inputs) {
    out.inputs.push_back({make_storage(*in.storage), in.bytes});
    there[in.storage->id] = out.inputs.back().storage;
  }
  const UOp moved = map_bottom_up(sink(c.sinks), [&](const UOp& u) -> UOp {
    if (u->op == Op::Buffer) return buffer(there.at(u->get<Ref<Storage>>()->id));
    if (std::holds_alternative<Placement>(u->arg))
      return make(u->op, u->dtype, u->src(), Placement{{device}});
    return {};
  });
  out.sinks.assign(moved->src().begin(), moved->src().end());
  return out;
}

namespace {

constexpr const char* kVariable = "# variable ";
constexpr const char* kValues = "# values ";
constexpr const char* kSeed = "# seed ";

std::string element_text(DType t, const std::byte* p) {
  const Scalar v = load_scalar(t, p);
  if (is_float(t)) return fmt::format("{}", v.as_double());
  return t == DType::U64 ? fmt::format("{}", v.bits) : fmt::format("{}", v.as_int());
}

std::string values_text(const GraphInput& in) {
  const size_t size = size_bytes(in.storage->dtype);
  std::string out;
  for (size_t at = 0; at < in.bytes.size(); at += size)
    out += " " + element_text(in.storage->dtype, in.bytes.data() + at);
  return out;
}

// Storages in the order in which the text defines their Buffers.
std::vector<uint64_t> storages_in(const std::string& ir) {
  static constexpr std::string_view kBuffer = "= buffer{storage ";
  std::vector<uint64_t> out;
  for (size_t at = ir.find(kBuffer); at != std::string::npos; at = ir.find(kBuffer, at + 1))
    out.push_back(std::strtoull(ir.c_str() + at + kBuffer.size(), nullptr, 10));
  return out;
}

Scalar element(DType t, const std::string& text, size_t number) {
  char* end = nullptr;
  Scalar v;
  if (is_float(t)) {
    v = Scalar::of_double(t, std::strtod(text.c_str(), &end));
  } else if (t == DType::U64) {
    v = {t, std::strtoull(text.c_str(), &end, 10)};
  } else {
    v = Scalar::of_int(t, std::strtoll(text.c_str(), &end, 10));
  }
  if (end == text.c_str() || *end)
    fail<InvalidArgument>("values {}: '{}' is no {}", number, text, name(t));
  return v;
}

std::vector<std::byte> read_values(const Storage& s, std::istringstream& line, size_t number) {
  const size_t size = size_bytes(s.dtype);
  std::vector<std::byte> bytes;
  for (std::string word; line >> word;) {
    bytes.resize(bytes.size() + size);
    store_scalar(element(s.dtype, word, number), bytes.data() + bytes.size() - size);
  }
  if (bytes.size() != size_t(s.count) * size)
    fail<InvalidArgument>("values {}: {} elements where the buffer has {}", number,
                          bytes.size() / size, s.count);
  return bytes;
}

}  // namespace

std::string to_text(const GraphCase& c) {
  const std::string ir = ir::to_text(sink(c.sinks));
  std::string head = fmt::format("{}{}\n", kSeed, c.seed);
  const std::map<std::string, int64_t> sorted(c.variables.begin(), c.variables.end());
  for (const auto& [name, value] : sorted)
    head += fmt::format("{}{} = {}\n", kVariable, name, value);
  size_t number = 0;
  for (uint64_t id : storages_in(ir)) {
    for (const GraphInput& in : c.inputs) {
      if (in.storage->id == id) head += fmt::format("{}{}:{}\n", kValues, number, values_text(in));
    }
    number++;
  }
  return head + ir;
}

namespace {

void read_variable(const std::string& line, GraphCase& c) {
  std::istringstream rest(line.substr(std::strlen(kVariable)));
  std::string name, equals;
  int64_t value = 0;
  if (!(rest >> name >> equals >> value) || equals != "=")
    fail<InvalidArgument>("'{}' gives no variable a value", line);
  c.variables[name] = value;
}

void read_contents(const std::string& line, GraphCase& c, std::vector<bool>& given) {
  std::istringstream rest(line.substr(std::strlen(kValues)));
  size_t number = 0;
  char colon = 0;
  if (!(rest >> number >> colon) || colon != ':' || number >= c.inputs.size())
    fail<InvalidArgument>("'{}': the graph has {} buffers", line.substr(0, 30), c.inputs.size());
  c.inputs[number].bytes = read_values(*c.inputs[number].storage, rest, number);
  given[number] = true;
}

}  // namespace

GraphCase case_from_text(const std::string& text) {
  const std::vector<UOp> roots = parse_text(text);
  if (roots.size() != 1 || roots[0]->op != Op::Sink)
    fail<InvalidArgument>("the graph does not end in one sink");
  GraphCase c;
  c.sinks.assign(roots[0]->src().begin(), roots[0]->src().end());
  std::map<uint64_t, Ref<Storage>> storages;  // ids rise as the text is read
  for (const Node* n : toposort(roots)) {
    if (n->op == Op::Buffer) storages[n->get<Ref<Storage>>()->id] = n->get<Ref<Storage>>();
  }
  for (const auto& [id, s] : storages) c.inputs.push_back({s, {}});
  std::vector<bool> given(c.inputs.size(), false);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kSeed))
      c.seed = std::strtoull(line.c_str() + std::strlen(kSeed), nullptr, 10);
    if (line.starts_with(kVariable)) read_variable(line, c);
    if (line.starts_with(kValues)) read_contents(line, c, given);
  }
  for (size_t i = 0; i < given.size(); i++) {
    if (!given[i]) fail<InvalidArgument>("values {}: the buffer's contents are missing", i);
  }
  return c;
}

}  // namespace tuff::check
