"""What a call is told whose arguments fit no signature of a function: the argument, and what it has to
be. Signatures are read from the docstring, in which pybind11 writes them. Objects are never printed:
printing a tensor computes it."""
import re

_WORDS = {
    "int": "an int", "float": "a number", "int | float": "a number", "bool": "a bool", "str": "a str",
    "dict": "a dict", "DType": "a dtype", "Sequence[int]": "an int or a sequence of ints",
    "os.PathLike": "a path", "buffer": "an object with memory", "None": "None", "object": "an object",
    "function": "a function",
}


def error(name, owner, doc, given, kwargs):
    """The exception that a call with these arguments ends with."""
    signatures = list(_signatures(doc))
    if name == "__init__":
        given, signatures = given[1:], [s[1:] for s in signatures]
    elif signatures and [p[0] for p in signatures[0]] == ["arg0", "arg1"]:  # what sets a property
        signatures = [[s[0], (name, *s[1][1:])] for s in signatures]
    if name in ("__init__", "__call__"):
        name = owner.__name__
    misfits = [_misfit(parameters, given, kwargs) for parameters in signatures]
    misfits = [m for m in misfits if m is not None]
    if not misfits:
        numbers = [v for v in [*given, *kwargs.values()] if type(v) is int and not 0 <= v < 2 ** 32]
        if numbers:  # of an unsigned type, which signatures do not tell
            return OverflowError(f"{name}(): {_short(numbers[0])} is out of range")
        kinds = ", ".join([_kind(v) for v in given] + [f"{k}={_kind(v)}" for k, v in kwargs.items()])
        return TypeError(f"{name}(): no arguments of the types ({kinds})")
    # What got farthest is what was meant; of several the argument may be of any.
    rank, argument, value, _, text = max(misfits, key=lambda m: m[0])
    if rank[0] == 0:
        return TypeError(f"{name}(): {text}")
    wanted = list(dict.fromkeys(_wanted(m[3]) for m in misfits if m[:2] == (rank, argument)))
    if isinstance(value, int) and not _is("int", value):
        return OverflowError(f"{name}(): {argument} is {_short(value)}, which is out of range")
    return TypeError(f"{name}(): {argument} has to be {' or '.join(wanted)}, not {_kind(value)}")


def _kind(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ in ("builtins", "tuff._tuff") else f"{kind.__module__}.{kind.__name__}"


def _short(number):
    return str(number) if abs(number) < 10 ** 40 else f"a number of {number.bit_length()} bits"


def _signatures(doc):
    """Of each a list of (name, type, how): how is "required", "optional", "keyword", "any"."""
    lines = [m.group(1) for m in re.finditer(r"^(?:\d+\. )?\w*\((.*)\) -> ", doc, re.MULTILINE)]
    if lines[:1] == ["*args, **kwargs"] and len(lines) > 1:  # of "Overloaded function."
        lines = lines[1:]
    for line in lines:
        parameters, keyword = [], False
        for part in _parts(line):
            m = re.match(r"(\w+): ([^=]*[^= ])(?:( ?= ?).*)?$", part, re.DOTALL)
            if part == "*":
                keyword = True
            elif part.startswith("*"):
                parameters.append((part.lstrip("*"), None, "any" if part == "*args" else "anything"))
            elif m:
                how = "keyword" if keyword else "optional" if m.group(3) else "required"
                parameters.append((m.group(1), m.group(2), how))
        yield parameters


def _parts(text, separator=", "):
    """What stands between separators outside of brackets and quotes."""
    depth, quote, start, i = 0, "", 0, 0
    while i < len(text):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif depth == 0 and text.startswith(separator, i):
            yield text[start:i]
            start, i = i + len(separator), i + len(separator) - 1
        i += 1
    if text[start:]:
        yield text[start:]


def _misfit(parameters, given, kwargs):
    """(how far the call got, argument, value, type, text) of what does not fit; None if all does."""
    by_position = [p for p in parameters if p[2] in ("required", "optional")]
    if len(given) > len(by_position) and not any(p[2] == "any" for p in parameters):
        own = by_position[1:] if by_position and by_position[0][0] == "self" else by_position
        count = len(given) - (len(by_position) - len(own))
        takes = f"{len(own)} positional argument{'s' * (len(own) != 1)}"
        return (0, 1), "", None, None, f"takes {takes}, {count} were given"
    values = dict(zip([p[0] for p in by_position], given))
    known = {p[0] for p in parameters}
    for name in kwargs:
        if name not in known and not any(p[2] == "anything" for p in parameters):
            return (0, 2), "", None, None, f"has no argument {name!r}"
        if name in values:
            return (0, 3), "", None, None, f"two values for the argument {name!r}"
    values.update(kwargs)
    for name, kind, how in parameters:
        if how == "required" and name not in values:
            return (0, 0), "", None, None, f"the argument {name!r} is missing"
    for i, (name, kind, how) in enumerate(parameters):
        if name in values and kind is not None:
            found = _unfit(kind, name, values[name])
            if found:
                return (1, i), found[0], found[1], found[2], ""
    return None


def _unfit(kind, name, value):
    """(name, value, type) of what does not fit a type, which may be an element; None if it does."""
    optional = re.fullmatch(r"Optional\[(.*)\]", kind)
    several = re.fullmatch(r"(?:List|Sequence|[Tt]uple)\[(.*)\]", kind)
    if optional:
        found = None if value is None else _unfit(optional.group(1), name, value)
        return found and (found[0], found[1], kind if found[0] == name else found[2])
    alternatives = list(_parts(kind, " | "))
    if kind != "int | float" and len(alternatives) > 1:
        found = [_unfit(k, name, value) for k in alternatives]
        if None in found:
            return None
        inside = [f for f in found if f[0] != name]  # an element of what is a sequence
        return inside[0] if inside else (name, value, kind)
    if several:
        if kind == "Sequence[int]" and _is("int", value):
            return None
        try:
            if isinstance(value, (str, bytes, bytearray)) or not hasattr(type(value), "__getitem__"):
                return name, value, kind
            kinds = list(_parts(several.group(1))) if kind[0] in "Tt" else [several.group(1)] * len(value)
            if len(kinds) != len(value):
                return name, value, kind
            for i, one in enumerate(kinds):
                found = _unfit(one, f"{name}[{i}]", value[i])
                if found:
                    return found
        except Exception:
            return name, value, kind
        return None
    if kind.endswith(".TensorDict") and isinstance(value, dict):
        inside = [_unfit("tuff._tuff.Tensor", f"{name}[{k!r}]", v) if isinstance(k, str) else (f"a key of {name}", k, "str")
                  for k, v in value.items()]
        return next(filter(None, inside), None)
    return None if _is(kind, value) else (name, value, kind)


def _is(kind, value):
    """Whether a value is of a type, as far as that can be said without calling it."""
    from . import _tuff
    tensor = isinstance(value, _tuff.Tensor)
    if kind == "int":
        if isinstance(value, int):
            return -2 ** 63 <= value < 2 ** 63
        return hasattr(type(value), "__index__") and not tensor
    if kind == "int | float":
        return not tensor and _is("float", value)
    if kind == "float":
        if isinstance(value, int):
            return abs(value) < 2 ** 1024
        return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if kind == "bool":
        return value is None or hasattr(type(value), "__bool__")
    if kind == "str":
        return isinstance(value, (str, bytes))
    if kind == "DType":
        return isinstance(value, (_tuff.DType, str, type)) or type(value).__module__.startswith("numpy")
    if kind == "os.PathLike":
        return isinstance(value, (str, bytes)) or hasattr(type(value), "__fspath__")
    if kind == "dict":
        return isinstance(value, dict)
    if kind == "None":
        return value is None
    if kind in ("function",) or kind.startswith("Callable"):
        return callable(value)
    if kind.startswith("tuff._tuff."):
        cls = _tuff
        for part in kind.split(".")[2:]:
            cls = getattr(cls, part, object)
        return isinstance(value, cls)
    return True


def _wanted(kind):
    """A type in words."""
    optional = re.fullmatch(r"Optional\[(.*)\]", kind)
    if optional:
        return _wanted(optional.group(1)) + " or None"
    if kind in _WORDS:
        return _WORDS[kind]
    several = re.fullmatch(r"(?:List|Sequence)\[(.*)\]", kind)
    if several:
        return "a sequence of which each is " + _wanted(several.group(1))
    alternatives = list(_parts(kind, " | "))
    if len(alternatives) > 1:
        return " or ".join(dict.fromkeys(w for k in alternatives for w in _wanted(k).split(" or ")))
    pair = re.fullmatch(r"[Tt]uple\[(.*)\]", kind)
    if pair:
        return f"{len(list(_parts(pair.group(1))))} values: " + ", ".join(_wanted(k) for k in _parts(pair.group(1)))
    if kind.startswith("Callable"):
        return "a function"
    return "a " + kind.split(".")[-1]
