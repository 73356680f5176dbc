"""The shape of the package: short import chains, small parts, calls that pass each module once."""

import ast
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

import aucmax
from aucmax.pairs.squared_hinge import PairPoint
from tests.searches import kernel_search, linear_search, table_model

PACKAGE = Path(aucmax.__file__).parent

#: The longest chain of imports, and the largest function, signature, class and file.
MOST_IMPORTS, MOST_LINES, MOST_PARAMETERS, MOST_METHODS, LONGEST_FILE = 15, 60, 8, 16, 460


def modules():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(("aucmax", *path.relative_to(PACKAGE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


def imports(tree, known):
    """The modules that a module imports when it is loaded."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_chains_of_imports_are_short():
    known = modules()
    below = {
        name: {each for each in imports(tree, known) if each in known} - {name, "aucmax"}
        for name, tree in known.items()
    }

    @cache
    def longest(name):
        return (name, *max((longest(each) for each in below[name]), key=len, default=()))

    chain = max((longest(name) for name in known), key=len)
    assert len(chain) > 10
    assert len(chain) <= MOST_IMPORTS, " -> ".join(chain)


def parts():
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield name, node


def test_functions_are_short():
    long = [
        (name, node.name)
        for name, node in parts()
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno + 1 > MOST_LINES
    ]
    assert long == []


def test_signatures_are_short_below_what_users_construct():
    for name, node in parts():
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            declared = any("declare" in ast.unparse(by) for by in node.decorator_list)
            if not isinstance(each, ast.FunctionDef) or (declared and each.name == "__init__"):
                continue
            names = [part.arg for part in (*each.args.args, *each.args.kwonlyargs)]
            count = len([part for part in names if part not in ("self", "cls")])
            listed = each.name == "__init__" or name == "aucmax.cli.commands"  # seen with their class
            if isinstance(node, ast.ClassDef) or not listed:
                assert count <= MOST_PARAMETERS, f"{name}: {each.name}"


def test_classes_are_small_and_so_are_files():
    for name, node in parts():
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            assert len(methods) <= MOST_METHODS, f"{name}: {node.name}"
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= LONGEST_FILE, path


def test_no_part_hides_an_attribute_from_the_type_checker():
    for path in PACKAGE.rglob("*.py"):
        assert "ignore[attr-defined]" not in path.read_text(), path


@pytest.fixture
def call_chains(monkeypatch):
    """Gives the modules that calls pass on the way down to a product with the Hessian."""
    product, seen = PairPoint.hessian_product, []

    def spy(self, direction):
        frame, chain = sys._getframe(1), []
        while frame is not None:
            file = frame.f_code.co_filename
            # The pool only calls what it is handed.
            if file.startswith(f"{PACKAGE}{os.sep}") and not file.endswith("threads.py"):
                chain.append(os.path.relpath(file, PACKAGE).replace(os.sep, "/"))
            frame = frame.f_back
        seen.append([each for i, each in enumerate(chain) if i == 0 or chain[i - 1] != each][::-1])
        return product(self, direction)

    monkeypatch.setattr(PairPoint, "hessian_product", spy)
    return seen


@pytest.mark.parametrize("name", ["default", "paper", "linear", "search", "linear search", "table"])
def test_a_fit_passes_each_module_once_on_the_way_down(name, call_chains):
    X, y = make_classification(300, 6, n_informative=4, weights=[0.8], random_state=0)
    model = {
        "default": aucmax.KernelAUCClassifier(random_state=0, effort=0.1),
        "paper": aucmax.KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0),
        "linear": aucmax.LinearAUCClassifier(),
        "search": kernel_search(2, n_landmarks=30, gammas=2, map_per_fold=True, random_state=0),
        "linear search": linear_search(2),
        "table": table_model(preset="paper", n_landmarks=30),
    }[name]
    model.fit(X, np.array(["no", "yes"])[y])
    assert call_chains
    for chain in call_chains:
        assert len(set(chain)) == len(chain), chain
    rooms = [each.split("/")[0] for each in max(call_chains, key=len)]
    assert len([each for i, each in enumerate(rooms) if i == 0 or rooms[i - 1] != each]) == len(
        {*rooms}
    )
