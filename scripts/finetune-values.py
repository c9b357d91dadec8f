#!/usr/bin/env python3
"""Writes adapters (LoRA) of small random language models, their logits and the losses of a few training steps, as well as
the losses of training all weights: tests/data/language/NAME_lora, as the library PEFT saves them, with values.json beside,
and full.json.

Usage: scripts/finetune-values.py [--models tests/data/language]
The models are folders there (scripts/language-values.py); PEFT 0.21, transformers 5 and torch 2 compute, in float32. The
steps are AdamW's on two texts of seven tokens.
"""
import argparse
import json
import pathlib

import peft
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = {"llama3": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
           "phi3": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], "gpt2": ["c_attn", "c_proj", "c_fc"]}
FULL = ["llama3", "phi3", "gemma3", "gpt2", "qwen2moe"]
STEPS, RATE, FULL_RATE = 8, 1e-2, 2e-3


def losses_of(model, tokens, rate):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0)
    batch, losses = tokens.reshape(2, 7), []
    for _ in range(STEPS):
        loss = model(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def write_adapter(folder, name, base, tokens):
    torch.manual_seed(3)
    rank = 3 if name == "llama3" else 2
    lora = peft.LoraConfig(r=rank, lora_alpha=5, target_modules=TARGETS[name], task_type="CAUSAL_LM",
                           fan_in_fan_out=name == "gpt2")
    model = peft.get_peft_model(base, lora)
    for key, parameter in model.named_parameters():
        if "lora_" in key:
            torch.nn.init.normal_(parameter, 0, 0.3)
    out = folder / f"{name}_lora"
    model.save_pretrained(out)
    (out / "README.md").unlink(missing_ok=True)
    config = out / "adapter_config.json"
    fields = json.loads(config.read_text())
    fields["base_model_name_or_path"] = name
    fields["target_modules"] = TARGETS[name]
    config.write_text(json.dumps(fields, indent=2) + "\n")
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    values = {"logits": [[float(f"{x:.6g}") for x in row] for row in logits.tolist()],
              "losses": losses_of(model, tokens, RATE), "rate": RATE}
    (out / "values.json").write_text(json.dumps(values).replace("], [", "],\n[") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "tests/data/language")
    folder = parser.parse_args().models
    tokens = torch.tensor(json.loads((folder / "logits.json").read_text())["tokens"])

    def base(name):
        return transformers.AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32)
    for name in TARGETS:
        write_adapter(folder, name, base(name), tokens)
    full = {name: losses_of(base(name), tokens, FULL_RATE) for name in FULL}
    (folder / "full.json").write_text(json.dumps({"rate": FULL_RATE, "losses": full}, indent=1) + "\n")


if __name__ == "__main__":
    main()
