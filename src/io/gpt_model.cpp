#include "io/gpt_model.h"

namespace tuff::io {
namespace {

std::vector<Block> make_blocks(RecipeParameters& source, const GptRecipe& recipe) {
  std::vector<Block> blocks;
  blocks.reserve(recipe.layers);
  for (uint32_t i = 0; i < recipe.layers; ++i) blocks.emplace_back(source, recipe.heads);
  return blocks;
}

void append(nn::Parameters& list, const nn::Parameters& more) {
  list.insert(list.end(), more.begin(), more.end());
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

Block::Block(RecipeParameters& source, int64_t heads)
    : ln1(source.layernorm(kGptNormEpsilon)),
      attention(source, heads),
      ln2(source.layernorm(kGptNormEpsilon)),
      mlp(source) {}

Tensor Block::operator()(const Tensor& x, bool masked, double dropout) const {
  const Tensor h = x + attention(ln1(x), masked).dropout(dropout);
  return h + mlp(ln2(h)).dropout(dropout);
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

nn::Parameters Gpt::parameters() const {
  nn::Parameters list{wte.weight, wpe.weight};
  for (const Block& b : blocks) {
    append(list, b.ln1.parameters());
    append(list, b.attention.qkv.parameters());
    append(list, b.attention.proj.parameters());
    append(list, b.ln2.parameters());
    append(list, b.mlp.fc.parameters());
    append(list, b.mlp.out.parameters());
  }
  append(list, lnf.parameters());
  append(list, head.parameters());
  return list;
}

}  // namespace tuff::io
