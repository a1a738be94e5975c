"""Mechanical changes of Python source: the usual operators of mutation analysis, on the syntax
tree.

A statement or a call is dropped, a condition negated, a number is off by one, arguments are
swapped, an operator or a constant is replaced. What only words messages and types is left alone.
The operators are those of DeMillo, Lipton and Sayward (1978) and of the tools after them that fit
Python.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

REACHED = "__mutant_reached__"  # called just before the changed statement runs

COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any", "append": "appendleft"}
TOLD = frozenset(["emit", "_emit"])  # calls that tell what happens inside, and change nothing
SYMMETRIC = frozenset(["isinstance", "zip", "require", "max", "min", "setdefault", "replace"])


@dataclass(frozen=True)
class Change:
    """One change: the `number` among those of its module, the line, and the code before and
    after. `where` is the statement of a constant, which says little by itself, and the function
    of changes that read alike.
    """

    number: int
    line: int
    before: str
    after: str
    where: str = ""

    def __str__(self) -> str:
        where = f"  in  {self.where}" if self.where else ""
        return f"{self.before}  ->  {self.after}{where}"


def changes(source: str) -> list[Change]:
    """Return all changes of a module, in the order of its text. No two of them read alike."""
    places = [*_places(ast.parse(source))]
    found = [
        Change(
            number,
            old.lineno,
            _text(old),
            _text(new) if new is not None else "(dropped)",
            _text(statement) if isinstance(old, ast.Constant) else "",
        )
        for number, (old, new, statement, _) in enumerate(places)
    ]
    return [*_told_apart(found, [function for *_, function in places])]


def _told_apart(found: list[Change], functions: list[str]) -> Iterator[Change]:
    """Name the function of changes that read alike, and number those of one function."""
    times, seen = Counter(map(str, found)), Counter[str]()
    for change, function in zip(found, functions, strict=True):
        if times[str(change)] > 1:
            change = replace(change, where="  in  ".join(filter(None, [change.where, function])))
            seen[str(change)] += 1
            if (nth := seen[str(change)]) > 1:
                change = replace(change, where=f"{change.where}, number {nth}")
        yield change


def changed(source: str, number: int) -> ast.Module:
    """Return the module with the change of this number made, and a call of REACHED just before the
    statement.
    """
    tree = ast.parse(source)
    for at, (old, new, statement, _) in enumerate(_places(tree)):
        if at == number:
            replacement = new if new is not None else ast.copy_location(ast.Pass(), old)
            _Replacing(old, replacement, statement).visit(tree)
            return ast.fix_missing_locations(tree)
    raise ValueError(f"there is no change number {number}")


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST, statement: ast.stmt) -> None:
        self._old, self._new, self._statement = old, new, statement

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        inside = self._new if node is self._old else self.generic_visit(node)
        if node is not self._statement:
            return inside
        called = ast.Expr(ast.Call(ast.Name(REACHED, ast.Load()), [], []))
        return [ast.copy_location(called, self._statement), inside]


Node = ast.stmt | ast.expr
Replaced = tuple[Node, Node | None, ast.stmt]  # the replaced node, the replacement, the statement
Place = tuple[Node, Node | None, ast.stmt, str]  # the same, and in which function


def _places(tree: ast.Module) -> Iterator[Place]:
    """Yield all places, those of a function's body with the statement that they are in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                for replaced in _of_statement(statement):
                    yield *replaced, node.name


def _of_statement(statement: ast.stmt) -> Iterator[Replaced]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Assert, ast.Pass)):
        return  # a nested function is found by itself
    if isinstance(statement, ast.Expr) and _name_of(statement.value) in TOLD:
        return
    if _droppable(statement):
        yield statement, None, statement
    if isinstance(statement, (ast.If, ast.While)) and not _has_opposite(statement.test):
        yield statement.test, _negated(statement.test), statement
    if isinstance(statement, ast.Raise):
        return  # text of a docstring
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield from _of_expression(child, statement)
            elif isinstance(child, ast.stmt):
                yield from _of_statement(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                for inner in child.body:
                    yield from _of_statement(inner)
            elif isinstance(child, ast.withitem):
                yield from _of_expression(child.context_expr, statement)


def _droppable(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            return True
        case ast.Return() | ast.Break() | ast.Continue():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
    return False


def _of_expression(root: ast.expr, statement: ast.stmt) -> Iterator[Replaced]:
    if isinstance(root, ast.JoinedStr):
        return  # words
    for new in _instead_of(root):
        yield root, ast.copy_location(new, root), statement
    for child in ast.iter_child_nodes(root):
        if isinstance(child, ast.expr):
            yield from _of_expression(child, statement)
        elif isinstance(child, ast.comprehension):
            yield from _of_expression(child.iter, statement)
            for test in child.ifs:
                if not _has_opposite(test):
                    yield test, _negated(test), statement
                yield from _of_expression(test, statement)
        elif isinstance(child, ast.keyword):
            yield from _of_expression(child.value, statement)


def _instead_of(node: ast.expr) -> Iterator[ast.expr]:
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
            new.ops = [COMPARED[type(operator)]()]
            yield new
        case ast.BinOp(op=operator) if type(operator) in COMPUTED:
            new.op = COMPUTED[type(operator)]()
            yield new
        case ast.BoolOp(op=operator):
            new.op = ast.And() if isinstance(operator, ast.Or) else ast.Or()
            yield new
        case ast.IfExp():
            new.test = _negated(new.test)
            yield new
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Slice(upper=ast.expr() as upper):
            new.upper = ast.BinOp(upper, ast.Sub(), ast.Constant(1))
            yield new
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITE:
            new.func.id = OPPOSITE[name]  # type: ignore[attr-defined]  # a Name, as matched
            yield new
        case ast.Call(func=func, args=[first, second, *rest]) if not _symmetric(func):
            if not any(isinstance(one, ast.Starred) for one in (first, second)):
                new.args = [second, first, *rest]
                yield new
        case ast.Call(func=ast.Name(), args=[only], keywords=[]) if not isinstance(
            only, (ast.Starred, ast.GeneratorExp)
        ):
            yield only


def _symmetric(func: ast.expr) -> bool:
    return _called(func) in SYMMETRIC


def _name_of(node: ast.expr) -> str:
    return _called(node.func) if isinstance(node, ast.Call) else ""


def _called(func: ast.expr) -> str:
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else ""


def _has_opposite(test: ast.expr) -> bool:
    """Return whether to replace the comparison is to negate it."""
    exact = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], exact)


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.copy_location(ast.UnaryOp(ast.Not(), copy.deepcopy(test)), test)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= 90 else text[:87] + "..."
