#!/usr/bin/env python3
"""Writes small random language models as GGUF files and their logits: tests/data/language/NAME.gguf, some
of them as Hugging Face's folders too, and logits.json.

Usage: scripts/language-values.py [--output tests/data/language]
Logits are those of transformers with torch (any version of 5 and 2), in float32; the files are written by gguf, whose
names of tensors and keys are llama.cpp's. Weights are rounded to halves first, so that both compute with the same ones.
One model for each architecture that src/language/config.cpp has, and for what files may say beside it.
"""
import argparse
import json
import math
import pathlib

import gguf
import numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = [1, 5, 9, 2, 40, 17, 3, 3, 28, 11, 46, 7, 30, 12]
SHAPE = {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}


def rope(theta=10000.0, **more):
    return {"rope_theta": theta, "rope_type": "default", **more}


T = transformers
MODELS = {
    "llama": ("llama", T.LlamaConfig, T.LlamaForCausalLM, {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama3": ("llama", T.LlamaConfig, T.LlamaForCausalLM,
               {"rope_parameters": rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                        high_freq_factor=4.0, original_max_position_embeddings=32)}),
    "llama_yarn": ("llama", T.LlamaConfig, T.LlamaForCausalLM,
                   {"rope_parameters": rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)}),
    "llama_linear": ("llama", T.LlamaConfig, T.LlamaForCausalLM,
                     {"rope_parameters": rope(rope_type="linear", factor=2.0)}),
    "qwen2": ("qwen2", T.Qwen2Config, T.Qwen2ForCausalLM, {"rope_parameters": rope(1e6)}),
    "qwen3": ("qwen3", T.Qwen3Config, T.Qwen3ForCausalLM, {"head_dim": 12}),
    "qwen3_wide": ("qwen3", T.Qwen3Config, T.Qwen3ForCausalLM, {"head_dim": 32}),  # q8_0 caches
    "phi3_longrope": ("phi3", T.Phi3Config, T.Phi3ForCausalLM,
                      {"original_max_position_embeddings": 16,
                       "rope_parameters": rope(rope_type="longrope", short_factor=[1.0, 1.1, 1.3, 1.6],
                                               long_factor=[2.0, 2.5, 3.0, 4.0])}),
    "phi3": ("phi3", T.Phi3Config, T.Phi3ForCausalLM, {"sliding_window": 5, "hidden_size": 32}),
    "gemma": ("gemma", T.GemmaConfig, T.GemmaForCausalLM, {"head_dim": 12}),
    "gemma2": ("gemma2", T.Gemma2Config, T.Gemma2ForCausalLM,
               {"head_dim": 12, "query_pre_attn_scalar": 12, "sliding_window": 5, "attn_logit_softcapping": 2.0,
                "final_logit_softcapping": 1.5}),
    "gemma3": ("gemma3", T.Gemma3TextConfig, T.Gemma3ForCausalLM,
               {"head_dim": 12, "query_pre_attn_scalar": 12, "sliding_window": 5, "num_hidden_layers": 6,
                "sliding_window_pattern": 6}),
    "mixtral": ("llama", T.MixtralConfig, T.MixtralForCausalLM,
                {"num_local_experts": 4, "num_experts_per_tok": 2, "rope_parameters": rope(1e6)}),
    "qwen2moe": ("qwen2moe", T.Qwen2MoeConfig, T.Qwen2MoeForCausalLM,
                 {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                  "shared_expert_intermediate_size": 20}),
    "qwen3moe": ("qwen3moe", T.Qwen3MoeConfig, T.Qwen3MoeForCausalLM,
                 {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True,
                  "head_dim": 12}),
    "gpt2": ("gpt2", T.GPT2Config, T.GPT2LMHeadModel, {"n_inner": 40, "num_key_value_heads": 4}),
}
BERT = {"mean": 1, "first": 2}  # pooling_type of GGUF
# Written as Hugging Face's folders, too.
FOLDERS = ["llama3", "phi3", "phi3_longrope", "gemma3", "mixtral", "qwen2moe", "gpt2"]
NAMES = [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output"),
         ("model.layers.", "blk."), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"),
         ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"), ("self_attn.qkv_proj", "attn_qkv"),
         ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm"), ("input_layernorm", "attn_norm"),
         ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"), ("mlp.gate_up_proj", "ffn_up"),
         ("mlp.down_proj", "ffn_down"), ("mlp.gate.", "ffn_gate_inp."),
         ("mlp.experts.down_proj", "ffn_down_exps.weight"), ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
         ("mlp.shared_expert.gate_proj", "ffn_gate_shexp"), ("mlp.shared_expert.up_proj", "ffn_up_shexp"),
         ("mlp.shared_expert.down_proj", "ffn_down_shexp")]
GPT2_NAMES = [("transformer.", ""), ("wte", "token_embd"), ("wpe", "position_embd"), ("ln_f", "output_norm"),
              ("h.", "blk."), (".ln_1", ".attn_norm"), ("attn.c_attn", "attn_qkv"), ("attn.c_proj", "attn_output"),
              ("ln_2", "ffn_norm"), ("mlp.c_fc", "ffn_up"), ("mlp.c_proj", "ffn_down")]
BERT_NAMES = [("embeddings.word_embeddings", "token_embd"), ("embeddings.position_embeddings", "position_embd"),
              ("embeddings.token_type_embeddings", "token_types"), ("embeddings.LayerNorm", "token_embd_norm"),
              ("encoder.layer.", "blk."), ("attention.self.query", "attn_q"), ("attention.self.key", "attn_k"),
              ("attention.self.value", "attn_v"), ("attention.output.dense", "attn_output"),
              ("attention.output.LayerNorm", "attn_output_norm"), ("intermediate.dense", "ffn_up"),
              (".output.dense", ".ffn_down"), (".output.LayerNorm", ".layer_output_norm")]


def names_of(architecture):
    if architecture in ("gpt2", "bert"):
        return GPT2_NAMES if architecture == "gpt2" else BERT_NAMES
    gemma23 = architecture in ("gemma2", "gemma3")
    norms = [("post_attention_layernorm", "post_attention_norm"), ("pre_feedforward_layernorm", "ffn_norm"),
             ("post_feedforward_layernorm", "post_ffw_norm")]
    return NAMES + (norms if gemma23 else [("post_attention_layernorm", "ffn_norm")])


def gguf_name(name, names):
    for old, new in names:
        name = name.replace(old, new)
    return name


def neighbours(weight, heads):
    """Rows of a head's halves as pairs, as GGUF files of llama have queries and keys."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def tensors_of(name, architecture, model, config):
    names = names_of(architecture)
    for key, value in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        value = value.numpy()
        if key.startswith("pooler"):
            continue
        if key.endswith("experts.gate_up_proj"):
            for part, half in zip(("gate", "up"), numpy.split(value, 2, 1)):
                yield gguf_name(key[:key.index("mlp")], names) + f"ffn_{part}_exps.weight", half
            continue
        if key.endswith("shared_expert_gate.weight"):
            value = value[0]
        if architecture == "gpt2" and ".c_" in key and value.ndim == 2:
            value = value.T
        if architecture == "llama" and ("q_proj" in key or "k_proj" in key):
            value = neighbours(value, config.num_attention_heads if "q_proj" in key else config.num_key_value_heads)
        if architecture.startswith("gemma") and "norm" in key:
            value = value + 1
        yield gguf_name(key, names), value
    if name == "phi3_longrope":
        for kind in ("short", "long"):
            factors = config.rope_parameters[f"{kind}_factor"]
            yield f"rope_factors_{kind}.weight", numpy.array(factors, numpy.float32)
    if name == "llama3":
        yield "rope_freqs.weight", llama3_factors(config)


def llama3_factors(config):
    p = config.rope_parameters
    size = config.hidden_size // config.num_attention_heads
    plain = p["rope_theta"] ** (-numpy.arange(0, size, 2) / size)
    scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    return (plain / scaled.numpy()).astype(numpy.float32)


def write(path, name, architecture, model, config):
    w = gguf.GGUFWriter(path, architecture)
    w.add_name(name)
    w.add_block_count(config.num_hidden_layers)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_feed_forward_length(config.n_inner if architecture == "gpt2" else config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    if architecture in ("gpt2", "bert"):
        w.add_layer_norm_eps(config.layer_norm_epsilon if architecture == "gpt2" else config.layer_norm_eps)
        if architecture == "bert":
            w.add_pooling_type(gguf.PoolingType(BERT[name.split("_")[1]]))
            w.add_causal_attention(False)
    else:
        write_rotating(w, architecture, config)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list([chr(97 + i % 26) * (1 + i // 26) for i in range(config.vocab_size)])
    w.add_token_types([gguf.TokenType.NORMAL] * config.vocab_size)
    w.add_token_merges(["a a"])
    for key, value in tensors_of(name, architecture, model, config):
        w.add_tensor(key, value.astype(numpy.float16 if value.ndim >= 2 else numpy.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_rotating(w, architecture, config):
    """What those before rotary positions and RMS norms have not."""
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(config.num_experts_per_tok)
        if architecture != "llama":
            w.add_expert_feed_forward_length(config.moe_intermediate_size)
        if architecture == "qwen2moe":
            w.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    w.add_key_length(size)
    w.add_value_length(size)
    parameters = config.rope_parameters
    p = parameters.get("full_attention", parameters)
    w.add_rope_freq_base(p["rope_theta"])
    if p["rope_type"] in ("yarn", "linear"):
        w.add_rope_scaling_type(gguf.RopeScalingType(p["rope_type"]))
        w.add_rope_scaling_factor(p["factor"])
    if p["rope_type"] == "longrope":
        original = config.original_max_position_embeddings
        w.add_rope_scaling_orig_ctx_len(original)
        longer = config.max_position_embeddings / original
        w.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(longer) / math.log(original)))
    if p["rope_type"] == "yarn":
        w.add_rope_scaling_orig_ctx_len(p["original_max_position_embeddings"])
    if getattr(config, "sliding_window", None) and architecture != "qwen2" and architecture != "qwen3":
        w.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        w.add_attn_logit_softcapping(config.attn_logit_softcapping)
        w.add_final_logit_softcapping(config.final_logit_softcapping)


def write_folder(folder, model):
    """As save_pretrained() does, in halves; the tokenizer has a character for each token."""
    folder.mkdir(exist_ok=True)
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    characters = [chr(97 + i % 26) * (1 + i // 26) for i in range(SHAPE["vocab_size"])]
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                 "post_processor": None, "decoder": {"type": "Fuse"},
                 "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(characters)}, "merges": [["a", "a"]]}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer) + "\n")


def rounded(row):
    return [float(f"{x:.6g}") for x in row.tolist()]


def drawn(model, name):
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            norm = "norm" in key.lower() or ".ln_" in key
            scales = norm and "gemma" not in name and not key.endswith("bias")
            torch.nn.init.normal_(parameter, 1 if scales else 0, 0.3)
            parameter.copy_(parameter.half().float())
    return model.eval()


def write_bert(folder, values):
    """An encoder: no logits; the mean of its tokens, and the first."""
    torch.manual_seed(4)
    shape = {key: n for key, n in SHAPE.items() if key != "num_key_value_heads"}
    model = drawn(transformers.BertModel(transformers.BertConfig(**shape, attn_implementation="eager")), "bert")
    with torch.no_grad():
        rows = model(torch.tensor([TOKENS])).last_hidden_state[0]
    for pooling in BERT:
        name = f"bert_{pooling}"
        vector = rows.mean(0) if pooling == "mean" else rows[0]
        values["embeddings"][name] = rounded(vector / vector.norm())
        write(folder / f"{name}.gguf", name, "bert", model, model.config)
    write_folder(folder / "bert_first", model)
    (folder / "bert_first/1_Pooling").mkdir(exist_ok=True)
    (folder / "bert_first/1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests/data/language")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    values = {"tokens": TOKENS, "models": {}, "embeddings": {}}
    for name, (architecture, config_class, model_class, more) in MODELS.items():
        torch.manual_seed(len(name))
        config = config_class(**{**SHAPE, **more, "attn_implementation": "eager"})
        model = drawn(model_class(config), name)
        with torch.no_grad():
            out = model(torch.tensor([TOKENS]), output_hidden_states=True)
        write(folder / f"{name}.gguf", name, architecture, model, config)
        if name in FOLDERS:
            write_folder(folder / name, model)
        values["models"][name] = [rounded(row) for row in out.logits[0]]
        mean = out.hidden_states[-1][0].mean(0)
        values["embeddings"][name] = rounded(mean / mean.norm())
    write_bert(folder, values)
    lines = json.dumps(values).replace("], [", "],\n[")
    (folder / "logits.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
