#include "models/gpt_model.h"

#include "base/check.h"

namespace tuff::models {
namespace {

std::vector<Block> make_blocks(RecipeParameters& source, const GptRecipe& recipe) {
  std::vector<Block> blocks;
  blocks.reserve(recipe.layers);
  for (uint32_t i = 0; i < recipe.layers; ++i) blocks.emplace_back(source, recipe.heads);
  return blocks;
}

}  // namespace

Attention::Attention(RecipeParameters& source, int64_t heads)
    : qkv(source.linear()), proj(source.linear()), heads(heads) {}

Tensor Attention::operator()(const Tensor& x, bool masked) const {
  const Size batch = x.size(0), length = x.size(1);
  const int64_t width = x.size(2);
  const std::vector<Tensor> parts = qkv(x).split(width, 2);
  auto by_head = [&](const Tensor& t) {
    return t.view({batch, length, heads, width / heads}).transpose(1, 2);
  };
  const Tensor q = by_head(parts[0]), k = by_head(parts[1]), v = by_head(parts[2]);
  const Tensor mixed =
      masked ? Tensor::scaled_dot_product_attention(
                   q, k, v, Tensor::eye(length, {DType::F32, x.device()}) != 0.0)
             : Tensor::scaled_dot_product_attention(q, k, v, {}, 0, /*is_causal=*/true);
  return proj(mixed.transpose(1, 2).reshape({batch, length, width}));
}

CachePlace::CachePlace(int64_t rows, const Size& length, int64_t context, const std::string& device)
    : first(length - rows), length(length) {
  if (rows == 1) return;
  const Tensor positions = Tensor::arange(0, context, 1, {DType::I32, device});
  visible = positions.narrow(0, 0, length) <=
            Tensor::arange(0, rows, 1, {DType::I32, device}).unsqueeze(1) + first;
}

Tensor Attention::next(const Tensor& x, KeyValues& cache, const CachePlace& place) const {
  const int64_t rows = x.size(0), width = x.size(1);
  const std::vector<Tensor> parts = qkv(x).split(width, 1);
  auto by_head = [&](const Tensor& t) {
    return t.detach()
        .view({rows, heads, width / heads})
        .transpose(0, 1);  // (heads, rows, C / heads)
  };
  auto put = [&](Tensor& into, const Tensor& rows_by_head) {
    into.index_put_({indexing::Slice{}, indexing::Slice{place.first, place.length}}, rows_by_head);
    return into.narrow(1, 0, place.length);
  };
  const Tensor keys = put(cache.keys, by_head(parts[1]));
  const Tensor values = put(cache.values, by_head(parts[2]));
  const Tensor mixed =
      Tensor::scaled_dot_product_attention(by_head(parts[0]), keys, values, place.visible);
  return proj(mixed.transpose(0, 1).reshape({rows, width}));
}

Block::Block(RecipeParameters& source, int64_t heads)
    : ln1(source.layernorm(kGptNormEpsilon)),
      attention(source, heads),
      ln2(source.layernorm(kGptNormEpsilon)),
      mlp(source) {}

Tensor Block::operator()(const Tensor& x, bool masked, double dropout) const {
  const Tensor h = x + attention(ln1(x), masked).dropout(dropout);
  return h + mlp(ln2(h)).dropout(dropout);
}

Tensor Block::next(const Tensor& x, KeyValues& cache, const CachePlace& place) const {
  const Tensor h = x + attention.next(ln1(x), cache, place);
  return h + mlp(ln2(h));
}

nn::StateDict Block::state_dict() const {
  nn::StateDict out;
  nn::append_state(out, "ln1", ln1.state_dict());
  nn::append_state(out, "attention.qkv", attention.qkv.state_dict());
  nn::append_state(out, "attention.proj", attention.proj.state_dict());
  nn::append_state(out, "ln2", ln2.state_dict());
  nn::append_state(out, "mlp.fc", mlp.fc.state_dict());
  nn::append_state(out, "mlp.out", mlp.out.state_dict());
  return out;
}

Gpt Gpt::uninitialized(const GptRecipe& recipe, const std::string& device) {
  return Gpt(recipe, RecipeParameters::uninitialized(gpt_parameters(recipe), device));
}

Gpt::Gpt(const GptRecipe& recipe, const std::string& device)
    : Gpt(recipe, RecipeParameters(gpt_parameters(recipe), recipe.seed, device)) {}

Gpt::Gpt(const GptRecipe& recipe, RecipeParameters source)
    : recipe(recipe),
      wte(source.embedding()),
      wpe(source.embedding()),
      blocks(make_blocks(source, recipe)),
      lnf(source.layernorm(kGptNormEpsilon)),
      head(source.linear_no_bias()) {}

Tensor Gpt::operator()(const Tensor& tokens) const {
  Tensor x = (wte(tokens) + wpe.weight.narrow(0, 0, tokens.size(1))).dropout(dropout);
  for (const Block& block : blocks) x = block(x, mask_attention, dropout);
  return head(lnf(x));
}

nn::StateDict Gpt::state_dict() const {
  nn::StateDict out;
  nn::append_state(out, "wte", wte.state_dict());
  nn::append_state(out, "wpe", wpe.state_dict());
  for (size_t i = 0; i < blocks.size(); ++i)
    nn::append_state(out, fmt::format("blocks.{}", i), blocks[i].state_dict());
  nn::append_state(out, "lnf", lnf.state_dict());
  nn::append_state(out, "head", head.state_dict());
  return out;
}

}  // namespace tuff::models
