// `tuff convert A B`: a file of any format that io reads, written in one of those that it writes.
#include <memory>

#include <tuff/io.h>
#include "base/check.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/write_progress.h"

namespace tuff::cli {
namespace {

struct ConvertOptions {
  std::string from, to, dtype, device;
  bool compress = false;
};

int convert(const ConvertOptions& o) {
  const TensorDict file = load(o.from, {.device = o.device});
  TensorDict out;
  const DType dtype = o.dtype.empty() ? DType::Void : parse_dtype(o.dtype);
  uint64_t bytes = 0;
  for (const std::string& name : file.names()) {
    Tensor t = file.at(name);
    if (is_float(dtype) && is_float(t.dtype())) t = t.cast(dtype);
    bytes += uint64_t(int64_t(t.numel())) * size_bytes(t.dtype());
    out.set(name, t);
  }
  for (const auto& [key, value] : file.metadata()) out.set_metadata(key, value);
  const int code = write_with_bar("convert", o.to, [&](const auto& progress) {
    save(o.to, out, {.compress = o.compress, .progress = progress});
  });
  if (code != kExitOk) return code;
  fmt::print("{}: {} tensor{}, {} bytes, from {}\n", printable(o.to), out.size(),
             out.size() == 1 ? "" : "s", bytes, file.format());
  return kExitOk;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "convert",
      "Writes the tensors of a file in another format: .safetensors, .npz or .npy by the ending of "
      "its name; reads what `tuff inspect` reads, blocks of GGUF become float32");
  auto o = std::make_shared<ConvertOptions>();
  c->add_option("from", o->from, "The file to read")->required()->type_name("FILE");
  c->add_option("to", o->to, "The file to write; whole, or as it was before")
      ->required()
      ->type_name("FILE");
  c->add_option(
       "--dtype", o->dtype,
       "Tensors of floats become these, integers and bools stay; default: all stay, blocks "
       "of GGUF become float32")
      ->check(CLI::IsMember({"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32",
                             "float64"}));
  c->add_option("--device", o->device,
                "Where dtypes are changed and blocks decoded; default: TUFF_DEVICE, else the best")
      ->type_name("NAME");
  c->add_flag("--compress", o->compress,
              "Deflates the arrays of an .npz; default: they are stored");
  c->footer(
      "Examples:\n"
      "  tuff convert checkpoint.pt weights.safetensors\n"
      "  tuff convert model.gguf model.npz --dtype float16 --compress");
  c->callback([o, &chosen] { chosen = [o] { return convert(*o); }; });
}

}  // namespace tuff::cli
