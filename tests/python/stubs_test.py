"""The type stubs name what there is, with the parameters that it takes; no more and no less."""
import ast
import inspect
import pathlib
import re
import unittest

import tuff

FOLDER = pathlib.Path(tuff.__file__).parent
# What classes have beyond their stubs: Python's own, and pybind11's.
OWN = set(dir(object)) | {"__abstractmethods__", "__dict__", "__weakref__", "__module__", "__array_ufunc__", "__init__",
                          "__annotations__"}
# Of Python's own, those that a class may have of its own and name.
NAMED = {"__init__", "__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__", "__hash__", "__format__", "__reduce__"}


def stub_of(name):
    tree = ast.parse((FOLDER / f"{name}.pyi").read_text())
    names, classes = {}, {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = node
        elif isinstance(node, ast.FunctionDef):
            names.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = []
        elif isinstance(node, ast.Assign) and (
                isinstance(node.value, ast.Attribute) or getattr(node.value, "id", "") in classes):
            names[node.targets[0].id] = []
    # What several classes have stands in bases that only the stub knows.
    for node in classes.values():
        for base in node.bases:
            if getattr(base, "id", "").startswith("_"):
                node.body = classes[base.id].body + node.body
    names = {name: nodes for name, nodes in names.items() if not name.startswith("_")}
    return names, {name: node for name, node in classes.items() if not name.startswith("_")}


def public(module):
    return {n for n in vars(module) if not n.startswith("_") and not inspect.ismodule(vars(module)[n])}


def parameters(node):
    a = node.args
    return tuple(x.arg for x in a.posonlyargs + a.args + a.kwonlyargs if x.arg != "self")


def bound_parameters(function):
    """Of each signature that pybind11 writes into a docstring; None where there is none."""
    lines = (function.__doc__ or "").splitlines()
    found = []
    for line in lines:
        m = re.match(r"(?:\d+\. )?\w+\((.*)\) -> ", line)
        if m and (not found or re.match(r"\d+\. ", line)):
            names = re.findall(r"(?:^|, )\*?(\w+): ", re.sub(r"\[[^\]]*\]", "", m.group(1)))
            found.append(tuple(n for n in names if n != "self"))
    return found


def members(node):
    found = {}
    for f in node.body:
        if isinstance(f, ast.FunctionDef):
            found.setdefault(f.name, []).append(f)
        elif isinstance(f, ast.AnnAssign):
            found[f.target.id] = []
        elif isinstance(f, ast.Assign) and getattr(f.value, "id", "") in found:
            found[f.targets[0].id] = []  # another name for a method above
    return found


class Stubs(unittest.TestCase):
    MODULES = (("__init__", tuff), ("fft", tuff.fft), ("linalg", tuff.linalg), ("special", tuff.special), ("_functional", tuff.nn.functional), ("distributions", tuff.distributions), ("_init", tuff.nn.init), ("nn", tuff.nn), ("optim", tuff.optim), ("data", tuff.data), ("digits", tuff.digits),
               ("autograd", tuff.autograd), ("amp", tuff.amp), ("onnx", tuff.onnx), ("language", tuff.language))

    def test_names_of_modules(self):
        for stub, module in self.MODULES:
            names, classes = stub_of(stub)
            self.assertEqual(set(names) | set(classes), public(module), stub)

    def test_members_of_classes(self):
        for stub, module in self.MODULES:
            for name, node in stub_of(stub)[1].items():
                cls = getattr(module, name)
                if issubclass(cls, BaseException):
                    self.assertEqual([ast.unparse(b).split(".")[-1] for b in node.bases],
                                     [b.__name__ for b in cls.__bases__])
                    continue
                if issubclass(cls, tuple):
                    self.assertEqual(set(members(node)), set(cls._fields))
                    continue
                # What a layer keeps is there once it is made (modules_test.py), and annotated before.
                own = {*vars(cls), *vars(cls).get("__annotations__", {})}
                own = {n for n in own if n not in OWN or (
                    n in NAMED and n in vars(cls) and cls is tuff.Tensor and n != "__init__")}
                own = {n for n in own if not n.startswith("_") or (
                    n.startswith("__") and not n.startswith("__pybind11"))}
                named = {n for n in members(node) if n not in OWN - NAMED and n != "__init__"}
                if cls in (tuff.Size, tuff.DType):
                    own, named = ({n for n in s if n not in NAMED or n in named and n in own}
                                  for s in (own, named))
                if cls is tuff.Jit:
                    own -= {"__get__", "__set_name__"}
                self.assertEqual(named, own, name)

    def test_parameters(self):
        compared = 0
        for stub, module in self.MODULES:
            names, classes = stub_of(stub)
            functions = [(getattr(module, n), nodes) for n, nodes in names.items()]
            for name, node in classes.items():
                functions += [(getattr(getattr(module, name), n, None), nodes)
                              for n, nodes in members(node).items() if not n.startswith("__")]
            for function, nodes in functions:
                if isinstance(function, property) or not callable(function) or not nodes:
                    continue
                bound = bound_parameters(function)
                if not bound or nodes[0].args.vararg:
                    continue
                self.assertEqual({parameters(n) for n in nodes}, set(bound), nodes[0].name)
                compared += 1
        self.assertGreater(compared, 120)

    def test_marked_as_typed(self):
        self.assertTrue((FOLDER / "py.typed").exists())

    def test_everything_is_described(self):
        for name in public(tuff):
            thing = getattr(tuff, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
        for name in dir(tuff.Tensor):
            if not name.startswith("_"):
                text = getattr(tuff.Tensor, name).__doc__.strip()
                self.assertGreater(len(text.splitlines()), 0, name)


if __name__ == "__main__":
    unittest.main()
