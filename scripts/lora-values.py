#!/usr/bin/env python3
"""Writes an adapter (LoRA) of a small random language model, its logits and the losses of a few training steps:
tests/data/language/llama3_lora, as the library PEFT saves it, with values.json beside.

Usage: scripts/lora-values.py [--models tests/data/language]
The model is the folder llama3 there (scripts/language-values.py); PEFT 0.21, transformers 5 and torch 2 compute, in
float32. The steps are AdamW's on two texts of seven tokens.
"""
import argparse
import json
import pathlib

import peft
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
STEPS, RATE = 8, 1e-2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "tests/data/language")
    folder = parser.parse_args().models
    tokens = torch.tensor(json.loads((folder / "logits.json").read_text())["tokens"])
    torch.manual_seed(3)
    base = transformers.AutoModelForCausalLM.from_pretrained(folder / "llama3", dtype=torch.float32)
    lora = peft.LoraConfig(r=3, lora_alpha=5, target_modules=TARGETS, task_type="CAUSAL_LM")
    model = peft.get_peft_model(base, lora)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, 0, 0.3)
    model.save_pretrained(folder / "llama3_lora")
    (folder / "llama3_lora/README.md").unlink(missing_ok=True)
    config = folder / "llama3_lora/adapter_config.json"
    fields = json.loads(config.read_text())
    fields["base_model_name_or_path"] = "llama3"
    fields["target_modules"] = TARGETS
    config.write_text(json.dumps(fields, indent=2) + "\n")
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0)
    batch, losses = tokens.reshape(2, 7), []
    for _ in range(STEPS):
        loss = model(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    values = {"logits": [[float(f"{x:.6g}") for x in row] for row in logits.tolist()], "losses": losses, "rate": RATE}
    (folder / "llama3_lora/values.json").write_text(json.dumps(values).replace("], [", "],\n[") + "\n")


if __name__ == "__main__":
    main()
