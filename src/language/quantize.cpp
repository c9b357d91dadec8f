// quantize(): a model with its weights in another type, tensor after tensor.
#include <filesystem>

#include <tuff/io.h>
#include <tuff/language.h>

#include "base/check.h"
#include "language/weight_types.h"
#include "language/write_gguf.h"

namespace tuff::language {
namespace {

class OtherTypes final : public WeightChanges {
 public:
  explicit OtherTypes(WeightTypes types) : types_(std::move(types)) {}
  std::string type(const TensorInfo& t) const override { return std::string(types_.of(t)); }
  std::optional<uint32_t> file_type() const override { return types_.file_type(); }

 private:
  const WeightTypes types_;
};

}  // namespace

Quantized quantize(const std::string& from, const std::string& to, const std::string& type,
                   const QuantizeOptions& options) {
  if (std::filesystem::is_directory(from))
    fail<Unsupported>("{} is a folder: GGUF files are quantized", from);
  require_new_file(to, options.overwrite);
  const TensorDict file = tuff::load(from, {.device = options.device});
  if (file.format() != "gguf")
    fail<Unsupported>("{} is of the format {}: GGUF files are quantized", from, file.format());
  return write_gguf(from, file, to, OtherTypes(WeightTypes(type, file.info())), options.progress);
}

}  // namespace tuff::language
