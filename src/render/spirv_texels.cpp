// Loads of the SPIR-V renderer through texel views: neighbours that make a whole texel of four or
// two elements, by their proven alignment, are one fetch; any other element is a texel by itself.
// A buffer may have a view for each of these. Texels are unsigned words, so that bits stay as they
// are.
#include <algorithm>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/walk.h"
#include "render/spirv_kernel.h"

namespace tuff::render {

using ir::Node;

bool SpirvKernel::read_as_texels(const Node& index) const {
  return k_.buffers.at(without_after(index.src(0).get())->get<ir::ParamArg>().slot).as_texels;
}

std::vector<SpirvKernel::Run> SpirvKernel::texel_runs(const std::vector<Access>& sorted) const {
  std::vector<Run> out;
  for (size_t begin = 0; begin < sorted.size();) {
    const Access& first = sorted[begin];
    const auto neighbours = [&](size_t n) {
      if (first.offset.divisor % static_cast<int64_t>(n) ||
          first.offset.constant % static_cast<int64_t>(n) || begin + n > sorted.size())
        return false;
      for (size_t i = 1; i < n; ++i) {
        const Access& a = sorted[begin + i];
        if (a.offset.base != first.offset.base || a.gate != first.gate ||
            a.offset.constant != first.offset.constant + static_cast<int64_t>(i))
          return false;
      }
      return true;
    };
    const size_t n = neighbours(4) ? 4 : neighbours(2) ? 2 : 1;
    out.push_back({{sorted.begin() + begin, sorted.begin() + begin + n}, false, true});
    begin += n;
  }
  return out;
}

// The image, loaded where it is used; its variable is declared at first use.
Id SpirvKernel::texel_image(uint32_t argument, uint32_t components) {
  m_.capability(spv::CapabilitySampledBuffer);
  const Id image = m_.type(
      spv::OpTypeImage, {t_.type(DType::U32), spv::DimBuffer, 0, 0, 0, 1, spv::ImageFormatUnknown});
  const TexelView view{argument, components};
  const auto it = std::find(texels_.begin(), texels_.end(), view);
  const size_t at = static_cast<size_t>(it - texels_.begin());
  if (it == texels_.end()) {
    const uint32_t storage = spv::StorageClassUniformConstant;
    const Id variable = m_.global(t_.pointer(storage, image), storage, false);
    m_.decorate(variable, spv::DecorationDescriptorSet, {0});
    m_.decorate(variable, spv::DecorationBinding, {static_cast<uint32_t>(at)});
    m_.name(variable, fmt::format("t{}_{}", argument, components));
    texels_.push_back(view);
    images_.push_back(variable);
  }
  return m_.at_entry(spv::OpLoad, image, {images_[at]});
}

// The elements of a run in memory form.
std::vector<Id> SpirvKernel::fetch(const Node& index, const Run& run, const SpirvValue& offset) {
  const auto n = static_cast<uint32_t>(run.items.size());
  const auto slot =
      static_cast<uint32_t>(without_after(index.src(0).get())->get<ir::ParamArg>().slot);
  const Id image = texel_image(slot, n), word = t_.type(DType::U32),
           memory = t_.memory(index.dtype);
  SpirvValue texel = offset;
  if (n > 1 && offset.base)
    texel.base = m_.pure(spv::OpShiftRightLogical, t_.reg(DType::I32),
                         {offset.base, t_.integer(DType::I32, n / 2)});
  texel.constant /= n;
  const Id all = m_.value(spv::OpImageFetch, t_.vector(word, 4), {image, id(texel, DType::I32)});
  std::vector<Id> out;
  for (uint32_t c = 0; c < n; ++c) {
    const Id bits = m_.value(spv::OpCompositeExtract, word, {all, c});
    out.push_back(memory == word ? bits : m_.value(spv::OpBitcast, memory, {bits}));
  }
  return out;
}

}  // namespace tuff::render
