"""What the C++ API's public headers declare is in the module, under the same name, or is listed here
with the reason why not. Usage: api_test.py INCLUDE_FOLDER"""
import pathlib
import re
import sys
import unittest

import tuff

FOLDER = pathlib.Path(sys.argv[1])
BASES = {"TensorMath": "Tensor", "TensorViews": "Tensor", "TensorProducts": "Tensor", "TensorLinalg": "Tensor",
         "TensorStatistics": "Tensor",
         "TensorScatter": "Tensor", "TensorSorting": "Tensor", "TensorWindows": "Tensor", "TensorWrites": "Tensor",
         "TensorRandom": "Tensor", "TensorShards": "Tensor"}
HEADERS = {"tensor.h": tuff, "tensor_math.h": tuff, "tensor_views.h": tuff, "tensor_products.h": tuff,
           "tensor_linalg.h": tuff, "linalg.h": tuff.linalg, "special.h": tuff.special,
           "tensor_statistics.h": tuff, "tensor_scatter.h": tuff, "tensor_sorting.h": tuff, "tensor_windows.h": tuff,
           "tensor_writes.h": tuff, "tensor_shards.h": tuff, "tensor_random.h": tuff, "int4.h": tuff, "fft.h": tuff.fft, "jit.h": tuff, "io.h": tuff, "dtype.h": tuff,
           "autograd.h": tuff.autograd, "kernel.h": tuff, "autocast.h": tuff.amp,
           "module.h": tuff.nn, "layers.h": tuff.nn, "window_layers.h": tuff.nn, "recurrent.h": tuff.nn, "transformer.h": tuff.nn,
           "onnx.h": tuff.onnx, "language.h": tuff.language, "adapter.h": tuff.language, "tokenizer.h": tuff, "chat_template.h": tuff, "grammar.h": tuff, "optimizer.h": tuff.optim, "optim.h": tuff.optim, "schedules.h": tuff.optim}
# Name in C++, or its class -> why there is none of that name in Python, or what takes its place.
REASONS = {
    "Tensor.defined": "None stands for a tensor that is none",
    "Tensor.from": "tensor(); the word is Python's",
    "Tensor.index": "x[...]",
    "Tensor.to_vector": "tolist() and numpy()",
    "Tensor.tensor_split_at": "tensor_split(indices)",
    "Tensor.hsplit_at": "hsplit(indices)",
    "Tensor.vsplit_at": "vsplit(indices)",
    "Tensor.dsplit_at": "dsplit(indices)",
    "Tensor.impl": "of the rooms behind the API",
    "max_pool1d_with_indices": "max_pool1d(return_indices=True)",
    "max_pool2d_with_indices": "max_pool2d(return_indices=True)",
    "max_pool3d_with_indices": "max_pool3d(return_indices=True)",
    "adaptive_max_pool1d_with_indices": "adaptive_max_pool1d(return_indices=True)",
    "adaptive_max_pool2d_with_indices": "adaptive_max_pool2d(return_indices=True)",
    "adaptive_max_pool3d_with_indices": "adaptive_max_pool3d(return_indices=True)",
    "Convolution": "what Conv1d, Conv2d and Conv3d have",
    "TransposedConvolution": "what ConvTranspose1d, ConvTranspose2d and ConvTranspose3d have",
    "MaxUnpool": "what MaxUnpool1d, MaxUnpool2d and MaxUnpool3d have",
    "padding_of": "of the pads' constructors",
    "Int4Weight": "quantize_int4() gives a tuple",
    "UniqueElements": "unique() gives what is asked for, as a tuple",
    "Index": "x[...] takes Python's own indices",
    "StftOptions": "keyword arguments of stft() and istft()",
    "Derivatives": "a pair",
    "JitOptions": "keyword arguments of Jit and jit",
    "Jit.graph": "the queue's graph, for measuring in C++",
    "TensorDict.size": "len(d)",
    "TensorDict.empty": "bool(d)",
    "TensorDict.names": "keys()",
    "TensorDict.contains": "name in d",
    "TensorDict.at": "d[name]",
    "TensorDict.set": "d[name] = tensor",
    "TensorDict.erase": "del d[name]",
    "TensorDict.set_state": "a dict with longer names: {f'model.{n}': t for n, t in state.items()}",
    "TensorDict.state": "a dict with shorter names",
    "TensorDict.set_metadata": "save(metadata=...)",
    "LoadOptions": "keyword arguments of load()",
    "KernelOptions": "keyword arguments of Kernel",
    "KernelOutput": "a pair of shape and dtype",
    "EncodeOptions": "keyword arguments of encode()",
    "ChatOptions": "keyword arguments of render()",
    "Tokenizer.from_metadata": "open()",
    "SessionOptions": "keyword arguments of Session",
    "Model.run": "model(...)",
    "ValueInfo.has_rank": "shape is not None",
    "SequenceOptions": "keyword arguments of Sequence",
    "cache_type": "cache=\"q8_0\"",
    "ReadOptions": "keyword arguments of Model()",
    "LoraOptions": "keyword arguments of Adapter.create()",
    "Adapter.options": "rank, alpha and targets",
    "GenerateOptions": "keyword arguments of generate() and of Batch.add()",
    "BatchOptions": "keyword arguments of Batch",
    "QuantizeOptions": "keyword arguments of quantize()",
    "packed_blocks": "of the rooms behind the API",
    "PerplexityOptions": "keyword arguments of perplexity()",
    "SaveOptions": "keyword arguments of save() and onnx.export()",
    "save": "of ONNX models: onnx.export()",
    "DTypeRow": "DType's properties",
    "Scalar": "Python's numbers",
    "kDTypeCount": "of the rooms behind the API",
    "kDTypeRows": "DType's properties",
    "row": "DType's properties",
    "size_bytes": "DType.itemsize",
    "name": "DType.name",
    "short_name": "of the text form of graphs",
    "is_float": "DType.is_float",
    "is_float8": "is_float and itemsize == 1",
    "has_infinity": "of the rooms behind the API",
    "largest_value": "finfo(dtype).max",
    "smallest_normal": "finfo(dtype).tiny",
    "is_unsigned": "is_int and not is_signed",
    "is_int": "DType.is_int",
    "is_weak": "Python's numbers are weak by themselves",
    "parse_dtype": "a dtype may be its name wherever one is taken",
    "strengthen": "Python's numbers are weak by themselves",
    "accumulator": "of the rooms behind the API",
    "load_scalar": "item()",
    "store_scalar": "tensor()",
    "convert": "cast()",
    "NamedTensor": "state_dict() is a dict",
    "parameters_of": "parameters()",
    "append_state": "a dict's update()",
    "Options": "keyword arguments of the schedule",
    "Group": "a dict of \"params\" and options",
    "Optimizer.groups": "len(lr_values)",
    "Optimizer.initial_lr": "of the schedules behind the API",
    "LRScheduler.optimizer": "as given to the constructor",
    "Sequential.size": "len(model)",
    "RecurrentCell": "what the cells have",
    "Recurrent": "what RNN, LSTM and GRU have",
    "RecurrentOptions": "keyword arguments of the layers",
    "TransformerOptions": "keyword arguments of the layers",
    "MultiHeadAttention.with_weights": "need_weights=True",
    "gelu": "activation == \"gelu\"",
    "Members": "attributes are found by themselves",
    "members": "attributes are found by themselves",
    "Module.tensors": "named_parameters() and named_buffers() with recurse=False",
    "Module.set_tensor": "an assignment to the attribute",
    "Module.remove_hook": "HookHandle.remove()",
    "ModuleList.size": "len(modules)",
    "ModuleList.begin": "iter(modules)",
    "ModuleList.end": "iter(modules)",
    "ModuleDict.set": "modules[name] = module",
    "ModuleDict.size": "len(modules)",
    "ModuleDict.contains": "name in modules",
    "ModuleDict.begin": "items()",
    "ModuleDict.end": "items()",
}
REASONS.update({name: "as given to the constructor" for name in (
    "dilation", "groups", "momentum", "eps", "heads", "dropout", "end_dim", "approximate",
    "group_size",
    "threshold", "padding", "channels", "padding_idx", "mode", "features",
    "nonlinearity", "Hardtanh.max", "stride", "padding_mode", "bias", "output_padding", "size", "scale_factor",
    "align_corners", "LocalResponseNorm.k")})
REASONS.update({f"{a}_{way}_{b}": "cast()" for a in ("f16", "bf16", "f8e4m3fn", "f8e5m2") for way in ("from", "to")
                for b in ("f32", "f64") if (way, b) != ("to", "f64")})

REASONS.update({f"{kind}Options": "keyword arguments of the optimizer" for kind in (
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Adafactor", "LAMB",
    "LARS", "Muon", "Lion", "LBFGS", "GradScaler")})


def without_comments(text):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def name_of(statement):
    """The function or value that a declaration is of; nothing for others."""
    s = re.sub(r"\[\[.*?\]\]", "", " ".join(statement.split()))
    s = re.sub(r"^(?:template <[^()]*?> )?(?:requires ?\(.*?\) )?", "", s)
    if not s or re.match(r"(using|friend|typedef|enum|namespace|class|struct|static_assert|extern)\b", s):
        return None
    before = s.split("(")[0].split("=")[0].split("{")[0].strip()
    if "operator" in before or "~" in before:
        return None
    m = re.search(r"(\w+)(?:\[\w*\])?$", before)
    return m.group(1) if m and " " in before else None


def declared(text):
    """(class or "", name) of each public declaration."""
    found, scopes, statement, depth_of_body, public = [], [], "", 0, [True]

    def take(s):
        name = name_of(s)
        if name and public[-1]:
            found.append((scopes[-1] if scopes else "", name))
    parens = 0
    for token in re.findall(r"::|[{}();:]|[^{}();:]+", text):
        if depth_of_body:
            depth_of_body += {"{": 1, "}": -1}.get(token, 0)
            if depth_of_body == 0 and not parens:
                take(statement)
                statement = ""
            continue
        access = token == ":" and re.search(r"\b(public|private|protected)\s*$", statement)
        if access:
            public[-1], statement = access.group(1) == "public", ""
        elif token == "{" and not parens:
            m = re.search(r"\b(class|struct|namespace)\b[^()]*?([\w:]+)?(?:\s*final)?\s*(?::[^{]*)?$", statement)
            plain = m and "(" not in statement and "=" not in statement and not statement.strip().startswith("enum")
            if plain and m.group(1) == "namespace":
                scopes.append("" if (m.group(2) or "") != "detail" else "detail")
                public.append(scopes[-1] != "detail" and public[-1])
                statement = ""
            elif plain and not re.match(r"\s*(template <[^>]*> )?enum", statement):
                name = re.search(r"\b(?:class|struct)\s+(\w+)", statement).group(1)
                scopes.append(name)
                public.append(m.group(1) == "struct" and public[-1] or m.group(1) == "class" and False)
                statement = ""
            else:
                depth_of_body = 1
        elif token == "{":
            depth_of_body = 1
        elif token == "}":
            scopes.pop()
            public.pop()
            statement = ""
        elif token == ";" and not parens:
            take(statement)
            statement = ""
        else:
            parens += {"(": 1, ")": -1}.get(token, 0)
            statement += token
    return found


class Api(unittest.TestCase):
    maxDiff = None

    def test_everything_is_there_or_has_a_reason(self):
        missing, needless, count = [], set(REASONS), 0
        for header, module in HEADERS.items():
            for owner, name in declared(without_comments((FOLDER / header).read_text())):
                owner = BASES.get(owner, owner)
                if owner == name or name in BASES or name.endswith("_"):
                    continue
                count += 1
                full = f"{owner}.{name}" if owner else name
                reasons = [r for r in (full, owner, name) if r in REASONS]
                holder = getattr(module, owner, None) if owner else module
                if holder is not None and (
                        hasattr(holder, name) or name in vars(holder).get("__annotations__", {})):
                    continue
                needless -= set(reasons)
                if not reasons:
                    missing.append(f"{header}: {full}")
        self.assertEqual(missing, [], "bind it, or give the reason in REASONS")
        self.assertEqual(needless, set(), "is in the module after all, or gone from the headers")
        self.assertGreater(count, 250)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
