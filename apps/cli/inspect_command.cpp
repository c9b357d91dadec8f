// `tuff inspect FILE`: the tensors and metadata of a file of any format that io reads, without
// reading the tensors' contents; what an ONNX model is.
#include <algorithm>
#include <array>
#include <memory>

#include <tuff/io.h>
#include "base/check.h"
#include "cli/command.h"
#include "cli/inspect_onnx.h"
#include "base/json.h"
#include "cli/terminal.h"

namespace tuff::cli {
namespace {

std::string dtype_of_info(const TensorInfo& t) {
  return t.dtype == DType::Void ? "-" : std::string(name(t.dtype));
}

struct MetadataJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const MetadataValue::List& v) const {
    Json out = Json::array();
    for (const MetadataValue& item : v) out.push_back(std::visit(*this, item.value));
    return out;
  }
  template <class T>
  Json operator()(const T& v) const {
    return v;
  }
};

void print_lines(const TensorDict& file) {
  for (const TensorInfo& t : file.info())
    print_json({{"event", "tensor"},
                {"name", t.name},
                {"type", t.type},
                {"dtype", dtype_of_info(t)},
                {"shape", t.shape},
                {"size_bytes", t.size_bytes},
                {"offset", t.offset},
                {"file", t.file}});
  for (const auto& [key, value] : file.metadata())
    print_json(
        {{"event", "metadata"}, {"key", key}, {"value", std::visit(MetadataJson{}, value.value)}});
  print_json({{"event", "done"}, {"format", file.format()}, {"tensors", file.size()}});
}

void print_table(const std::string& path, const TensorDict& file) {
  const Style style = Style::of_stdout();
  const std::vector<TensorInfo> tensors = file.info();
  uint64_t bytes = 0;
  std::vector<std::array<std::string, 6>> rows{
      {"name", "type", "dtype", "shape", "bytes", "offset"}};
  for (const TensorInfo& t : tensors) {
    bytes += t.size_bytes;
    rows.push_back({printable(t.name), t.type, dtype_of_info(t),
                    fmt::format("({})", fmt::join(t.shape, ", ")), std::to_string(t.size_bytes),
                    std::to_string(t.offset)});
  }
  std::array<size_t, 6> widths{};
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
  fmt::print("{}{}{}: {}, {} tensor{}, {} bytes\n", style.bold, printable(path), style.plain,
             file.format(), tensors.size(), tensors.size() == 1 ? "" : "s", bytes);
  for (const auto& row : rows)
    fmt::print("  {:<{}}  {:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}\n", row[0], widths[0], row[1],
               widths[1], row[2], widths[2], row[3], widths[3], row[4], widths[4], row[5],
               widths[5]);
  if (!file.metadata().empty()) fmt::print("metadata\n");
  for (const auto& [key, value] : file.metadata())
    fmt::print("  {}: {}\n", printable(key), printable(value.str()));
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& chosen) {
  struct Options {
    std::string file;
    bool json = false;
  };
  CLI::App* c = app.add_subcommand(
      "inspect",
      "Lists the tensors and metadata of a file: safetensors (single, or sharded by its "
      ".index.json), .npy, .npz, PyTorch's .pt and .pth, GGUF, IDX; inputs, outputs and operators "
      "of an ONNX model, with those that are missing");
  auto o = std::make_shared<Options>();
  c->add_option("file", o->file, "The file; its format is told by its contents")
      ->required()
      ->type_name("FILE");
  c->add_flag("--json", o->json, "One JSON object per line");
  c->footer(
      "Examples:\n"
      "  tuff inspect model.gguf\n"
      "  tuff inspect model.safetensors.index.json --json\n"
      "  tuff inspect model.onnx");
  c->callback([o, &chosen] {
    chosen = [o] {
      if (is_onnx_file(o->file)) {
        inspect_onnx(o->file, o->json);
        return kExitOk;
      }
      const TensorDict file = load(o->file);
      if (o->json)
        print_lines(file);
      else
        print_table(o->file, file);
      return kExitOk;
    };
  });
}

}  // namespace tuff::cli
