#include "check/reproducer.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/os.h"
#include "check/result_json.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/program/compile_options.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "kernel/lowered.h"
#include "render/renderer.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::Op;
using ir::UOp;

std::string folder_name(const std::string& device, const std::string& case_name) {
  std::string out = device + "-" + case_name;
  std::replace_if(
      out.begin(), out.end(),
      [](char ch) { return !std::isalnum(uint8_t(ch)) && ch != '.' && ch != '-'; }, '_');
  return out;
}

void write_bytes(const std::string& path, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  os::write_file(path, {bytes, size});
}

// Writes arrays as PREFIX_i.bin, row-major and little-endian, and returns their descriptions.
Json write_arrays(const std::string& folder, const std::string& prefix, const Arrays& arrays) {
  Json list = Json::array();
  for (size_t i = 0; i < arrays.size(); i++) {
    const std::string file = fmt::format("{}_{}.bin", prefix, i);
    write_bytes(folder + "/" + file, arrays[i].bytes.data(), arrays[i].bytes.size());
    list.push_back(
        {{"file", file}, {"dtype", short_name(arrays[i].dtype)}, {"shape", arrays[i].shape}});
  }
  return list;
}

HostArray read_array(const std::string& folder, const Json& j) {
  HostArray a{
      parse_dtype(j.at("dtype").get<std::string>()), j.at("shape").get<ir::IntVec>(), {}};
  const std::string path = folder + "/" + j.at("file").get<std::string>();
  const std::vector<uint8_t> bytes = os::read_file(path);
  if (bytes.size() != size_t(a.count()) * size_bytes(a.dtype))
    fail<InvalidArgument>("{} has {} bytes, case.json says {}", path, bytes.size(),
                          size_t(a.count()) * size_bytes(a.dtype));
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  a.bytes.assign(data, data + bytes.size());
  return a;
}

// The graph with parameters for its memory, and what that memory holds: inputs first, then what
// else the graph reads (the state of a generator).
struct Portable {
  UOp sink;
  Arrays memory;
};

Portable portable(const BoundCase& bound) {
  Portable out;
  ir::UOpMap<UOp> map;
  auto add = [&](const UOp& leaf, HostArray contents) {
    map.emplace(leaf,
                ir::param(int32_t(out.memory.size()), leaf->dtype, leaf->shape[0].value()));
    out.memory.push_back(std::move(contents));
  };
  for (size_t i = 0; i < bound.inputs().size(); i++) add(bound.leaves()[i], bound.inputs()[i]);
  for (const ir::Node* n : ir::toposort(bound.roots())) {
    if (n->op != Op::Buffer || map.count(UOp(n))) continue;
    auto* buffer = dynamic_cast<engine::Buffer*>(n->get<Ref<ir::Storage>>().get());
    TUFF_CHECK(buffer, "a storage is no engine buffer");
    HostArray contents{n->dtype, {buffer->count}, std::vector<std::byte>(buffer->size_bytes())};
    if (!contents.bytes.empty()) buffer->copyout(contents.bytes.data());
    add(UOp(n), std::move(contents));
  }
  out.sink = ir::sink(ir::substitute(bound.roots(), map));
  return out;
}

void write_kernels(const std::string& folder, const BoundCase& bound, const Target& target) {
  const render::Renderer& renderer = render::renderer_of(target);
  size_t number = 0;
  for (const UOp& ast : bound.asts()) {
    const render::Source source = renderer.render(kernel::lower(ast, target, engine::lower_options()), target);
    const std::string path = fmt::format("{}/kernel_{}", folder, number++);
    if (!source.text.empty()) {
      os::write_text(path + ".c", source.text);
      continue;
    }
    write_bytes(path + ".spv", source.words.data(), source.words.size() * 4);
    os::write_text(path + ".spvasm", render::to_text(source));
  }
}

Json describe(const Case& c, const CaseResult& r, const Circumstances& how) {
  Json j = to_json(r);
  j.erase("reproducer");
  j["dtypes"] = Json::array();
  for (const DType t : c.dtypes) j["dtypes"].push_back(short_name(t));
  j["budget"] = {{"host_ulp", c.budget.host_ulp},
                 {"vulkan_ulp", c.budget.vulkan_ulp},
                 {"scale", c.budget.scale == Scale::Largest ? "largest" : "element"},
                 {"source", c.budget.source}};
  j["variables"] = Json::object();
  for (const auto& [variable, value] : c.variables) j["variables"][variable] = value;
  j["device"] = how.device;
  j["against"] = how.against;
  j["seed"] = how.seed;
  j["command"] = how.command;
  return j;
}

}  // namespace

std::string write_reproducer(const std::string& out, const Case& c, const CaseResult& result,
                             const Circumstances& how, const Arrays* outputs) {
  const std::string folder = out + "/" + folder_name(how.device, c.name);
  os::make_directories(folder);
  Json j = describe(c, result, how);
  Json left_out = Json::array();
  auto part = [&](const char* what, const std::function<void()>& write) {
    try {
      write();
    } catch (const Error& e) {
      left_out.push_back(fmt::format("{}: {}", what, e.what()));
    }
  };
  part("inputs", [&] { j["inputs"] = write_arrays(folder, "input", c.inputs(how.seed)); });
  std::optional<BoundCase> bound;
  part("graph", [&] {
    bound.emplace(c, how.device, how.seed);
    const Portable p = portable(*bound);
    os::write_text(folder + "/graph.txt", ir::to_text(p.sink));
    j["inputs"] = write_arrays(folder, "input", p.memory);
  });
  part("target", [&] {
    os::write_text(folder + "/target.json", to_json(engine::Device::get(how.device)->target()));
  });
  if (bound) {
    part("kernels",
         [&] { write_kernels(folder, *bound, engine::Device::get(how.device)->target()); });
    part("expected", [&] { j["want"] = write_arrays(folder, "want", bound->interpret()); });
  }
  if (outputs) j["got"] = write_arrays(folder, "got", *outputs);
  j["left_out"] = left_out;
  os::write_text(folder + "/case.json",
                 j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return folder;
}

namespace {

Roots roots_of(const std::string& text, const Roots& inputs) {
  const std::vector<UOp> parsed = ir::parse_text(text);
  if (parsed.size() != 1 || parsed[0]->op != Op::Sink)
    fail<InvalidArgument>("graph.txt holds no single sink");
  ir::UOpMap<UOp> map;
  for (const ir::Node* n : ir::toposort(parsed[0])) {
    if (n->op != Op::Param) continue;
    const auto slot = size_t(n->get<ir::ParamArg>().slot);
    if (slot >= inputs.size())
      fail<InvalidArgument>("graph.txt reads input {} of {}", slot, inputs.size());
    map.emplace(UOp(n), ir::reshape(inputs[slot], n->shape));
  }
  const std::vector<UOp> sinks = ir::substitute(parsed, map);
  return {sinks[0]->src().begin(), sinks[0]->src().end()};
}

Case case_from_json(const std::string& folder, const Json& j) {
  Case c;
  c.name = j.at("case").get<std::string>();
  c.op = j.at("op").get<std::string>();
  c.dtype = parse_dtype(j.at("dtype").get<std::string>());
  for (const Json& t : j.at("dtypes")) c.dtypes.push_back(parse_dtype(t.get<std::string>()));
  const Json& b = j.at("budget");
  c.budget = {b.at("host_ulp").get<double>(), b.at("vulkan_ulp").get<double>(),
              b.at("scale") == "largest" ? Scale::Largest : Scale::Element,
              b.at("source").get<std::string>()};
  for (const auto& [variable, value] : j.at("variables").items())
    c.variables[variable] = value.get<int64_t>();
  c.inputs = [folder, list = j.at("inputs")](uint64_t) {
    Arrays out;
    for (const Json& a : list) out.push_back(read_array(folder, a));
    return out;
  };
  c.build = [text = os::read_text(folder + "/graph.txt")](const Roots& x, const std::string&) {
    return roots_of(text, x);
  };
  return c;
}

}  // namespace

Reproducer read_reproducer(const std::string& folder) {
  const std::string path = folder + "/case.json";
  const std::string text = os::read_text(path);
  try {
    const Json j = Json::parse(text);
    Reproducer r;
    r.c = case_from_json(folder, j);
    r.how = {j.at("device").get<std::string>(), j.at("against").get<std::string>(),
             j.at("seed").get<uint64_t>(), j.at("command").get<std::string>()};
    r.verdict = verdict_named(j.at("verdict").get<std::string>());
    return r;
  } catch (const nlohmann::json::exception& e) {
    fail<InvalidArgument>("{} is malformed: {}", path, e.what());
  }
}

}  // namespace tuff::check
