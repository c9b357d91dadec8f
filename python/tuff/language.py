"""Language models: read, run, and texts that they write.

    model = tuff.language.Model.open("model.gguf")
    sequence = tuff.language.Sequence(model)
    prompt = model.tokenizer().encode("Once upon a time")
    print(tuff.language.generate(sequence, prompt, tokens=64).text)
"""
from ._tuff.language import (Adapter, Answer, AnswerPiece, Batch, BatchStats, Description, Model, Perplexity, Quantized,
                             Sampler, Sampling, Sequence, TokenChoice, TokenLogprobs, embed, generate, perplexity,
                             quantize)  # noqa: F401
