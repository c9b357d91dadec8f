#!/usr/bin/env python3
"""Writes the seeds of fuzz_requests: make_requests_corpus.py FOLDER, as FOLDER/requests/seed-N.

A 'C' before a request for a chat, a 'P' before one for a completion, an 'E' before one for an embedding, a 'T' before
an answer with calls of tools.
"""
import json
import pathlib
import sys

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": [1, null]}"}}
CHAT = {"model": "m", "messages": [
    {"role": "developer", "content": [{"type": "text", "text": "a"}]}, {"role": "user", "content": "b"},
    {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "1", "content": "c"}],
    "tools": [TOOL], "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True},
    "n": 2, "stop": ["x"],
    "logit_bias": {"5": -100}, "logprobs": True, "top_logprobs": 3, "temperature": 0.5, "top_p": 1, "seed": -7,
    "response_format": {"type": "text"}, "max_tokens": None, "max_completion_tokens": 9,
    "chat_template_kwargs": {"a": 1}}


def main():
    folder = pathlib.Path(sys.argv[1]) / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    seeds = ["C" + json.dumps(CHAT),
             "P" + json.dumps({"prompt": ["a", [1, 2]], "echo": True, "best_of": 1, "suffix": ""}),
             "P" + json.dumps({"prompt": [1, 2], "logprobs": 5, "grammar": "root ::= [a-z]+"}),
             "C" + json.dumps({"messages": CHAT["messages"], "response_format": {"type": "json_schema", "json_schema": {
                 "name": "n", "strict": True, "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}),
             "E" + json.dumps({"input": "a", "encoding_format": "base64"}),
             "Ta <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
             "T{\"name\": \"f\", \"parameters\": {}}"]
    for i, seed in enumerate(seeds):
        (folder / f"seed-{i}").write_text(seed)


if __name__ == "__main__":
    main()
