"""TLA+ modules as syntax trees, by tree-sitter's grammar of TLA+."""

import warnings
from collections.abc import Iterable, Iterator

import tree_sitter
import tree_sitter_tlaplus

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", DeprecationWarning
    )  # the grammar hands its address over in the old way
    PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_tlaplus.language()))

Node = tree_sitter.Node


def definitions(source: bytes) -> dict[str, Node]:
    """Return the operators that a module defines at its top."""
    root = PARSER.parse(source).root_node
    module = next(node for node in root.children if node.type == "module")
    found = [node for node in module.children if node.type == "operator_definition"]
    return {text(named(node)): node for node in found}


def variables(source: bytes) -> set[str]:
    """Return the variables that a module declares."""
    return {
        text(node)
        for node in within(PARSER.parse(source).root_node)
        if node.type == "identifier" and parent(node).type == "variable_declaration"
    }


def closure(names: Iterable[str], defined: dict[str, Node]) -> set[str]:
    """Return the operators that these use, directly or not, themselves among them."""
    todo, seen = list(names), set()
    while todo:
        name = todo.pop()
        if name in defined and name not in seen:
            seen.add(name)
            todo += [text(node) for node in within(defined[name]) if node.type == "identifier_ref"]
    return seen


def within(node: Node) -> Iterator[Node]:
    """Yield the node and all that it consists of, in the order of the text."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(node.children)


def named(definition: Node) -> Node:
    """Return the name of a definition."""
    name = definition.child_by_field_name("name")
    assert name is not None
    return name


def parent(node: Node) -> Node:
    """Return the node that a node is a part of; a module has none."""
    assert node.parent is not None
    return node.parent


def text(node: Node) -> str:
    """Return the text that the node stands for."""
    assert node.text is not None
    return node.text.decode()
