"""The tools that a call offers its model, where Variables stand in their descriptions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from textgrad_engine import fences, pytree
from textgrad_engine.autograd import Variable

_DESCRIPTION = "description"
_PROPERTIES = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Of a JSON schema: below these are names that its author gave."""


@dataclass(frozen=True, slots=True)
class Description:
    """A description that is a value of the call.

    Attributes:
        at: its position among the values.
        leaf: which leaf of the tools it is.
        key: what it is called for who speaks of it.
    """

    at: int
    leaf: int
    key: str


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools whose descriptions are values of the call, taken apart.

    Attributes:
        spec: their shape.
        leaves: what is in them, None in the place of values.
        descriptions: those that are values.
        form: they as JSON, which tells 1 from true; by it and the descriptions two are equal.
        last: the texts in the last request, and the tools made of them: most calls are offered the same.
    """

    spec: pytree.TreeSpec = field(compare=False)
    leaves: tuple[Any, ...] = field(compare=False)
    descriptions: tuple[Description, ...]
    form: str
    last: dict[str, Any] = field(compare=False, repr=False, default_factory=dict)

    def behind(self, count: int) -> Offered:
        """The same where so many more values of the call stand before the descriptions."""
        return replace(
            self, descriptions=tuple([replace(each, at=each.at + count) for each in self.descriptions]), last={}
        )

    def tools(self, data: Sequence[Any]) -> tuple[dict[str, Any], ...]:
        """The tools, as a request has them.

        Args:
            data: what all values of the call hold.
        """
        texts = [fences.as_text(data[each.at]) for each in self.descriptions]
        known = self.last.get("request")
        if known is None or known[0] != texts:
            known = self.last["request"] = texts, self._filled(texts)
        tools: tuple[dict[str, Any], ...] = known[1]
        return tools

    def _filled(self, texts: Sequence[str]) -> tuple[dict[str, Any], ...]:
        filled = list(self.leaves)
        for each, text in zip(self.descriptions, texts):
            filled[each.leaf] = text
        tools: tuple[dict[str, Any], ...] = pytree.unflatten(self.spec, filled)
        return tools

    def shown(self, data: Sequence[Any], keys: Mapping[int, str]) -> str:
        """The tools as a critic is shown them, a line of JSON each.

        Args:
            data: what all values of the call hold.
            keys: between which tags a description stands, by its position; one that is not among them has none.
        """
        beside = "\n".join([text for text in (*data, *self.leaves) if isinstance(text, str)])  # looked through for each

        def marked(each: Description) -> str:
            text = fences.as_text(data[each.at])
            return fences.mark(text, keys[each.at], [beside]) if each.at in keys else text

        return as_lines(self._filled([marked(each) for each in self.descriptions]))


def as_lines(tools: Sequence[Mapping[str, Any]]) -> str:
    """Descriptions of tools for who reads them: a line of JSON each."""
    return "\n".join([json.dumps(tool, ensure_ascii=False) for tool in tools])


def taken_apart(tools: Sequence[Mapping[str, Any]], first: int) -> tuple[Offered, list[Variable]]:
    """Tools with Variables in their descriptions, and these Variables.

    Args:
        tools: their descriptions, as in OpenAI's API.
        first: the position of the first of these Variables among the values of the call.

    Raises:
        TypeError: a Variable stands somewhere else than as a description, such as a name.
    """
    leaves, spec = pytree.flatten(tuple(tools))
    values: list[Variable] = []
    descriptions = []
    for number, (leaf, path) in enumerate(zip(leaves, _paths(tuple(tools)), strict=True)):
        if not isinstance(leaf, Variable):
            continue
        tool = tools[path[0]]
        inside, is_name = _names_in(path[1:])
        if path[-1] != _DESCRIPTION or is_name:
            raise TypeError(
                f"a Variable stands in the tool {name_of_tool(tool)!r} at {'.'.join(map(str, path[1:]))}; only "
                "descriptions are texts that may be trained, so give a text there"
            )
        at = first + len(values)
        key = re.sub(r"\W", "_", "_".join([name_of_tool(tool), *inside, _DESCRIPTION]))
        descriptions.append(Description(at, number, key))
        leaves[number] = None
        values.append(leaf)
    form = json.dumps(pytree.unflatten(spec, leaves), default=repr)
    return Offered(spec, tuple(leaves), tuple(descriptions), form), values


def without_values(tools: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Tools with the empty text in the place of Variables, which calls put in."""
    made: tuple[Mapping[str, Any], ...] = pytree.map_leaves(
        lambda leaf: "" if isinstance(leaf, Variable) else leaf, tuple(tools)
    )
    return made


def is_function(tool: Any) -> bool:
    """Whether a tool is a function, or the description of one, and none of an endpoint's own.

    Example:
        >>> is_function(len), is_function({"type": "function", "name": "order"}), is_function({"type": "web_search"})
        (True, True, False)
    """
    return tool.get("type") == "function" if isinstance(tool, Mapping) else callable(tool)


def name_of_tool(tool: Mapping[str, Any]) -> str:
    """What a description calls its tool; of one that an endpoint brings along (``{"type": "web_search"}``) its kind.

    Example:
        >>> name_of_tool({"type": "function", "function": {"name": "order"}}), name_of_tool({"type": "web_search"})
        ('order', 'web_search')
    """
    return str(inside_of(tool).get("name") or tool.get("type"))


def told_inside(tool: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a description says of what is in it: the names that lead there, with dots between them, and the text.

    Example:
        >>> city = {"type": "object", "properties": {"name": {"description": "no country"}}, "description": "where"}
        >>> told_inside({"function": {"description": "Goes.", "parameters": {"properties": {"city": city}}}})
        [('city.name', 'no country'), ('city', 'where')]
    """
    found = []
    for leaf, path in zip(pytree.leaves(tool), _paths(tool)):
        names, is_name = _names_in(path)
        if names and not is_name and path[-1] == _DESCRIPTION and isinstance(leaf, str) and leaf:
            found.append((".".join(names), leaf))
    return found


def part_names(names: Iterable[str]) -> dict[str, str]:
    """What parts of a program are called that belong to these names: a path has dots between parts, and none in one.

    Example:
        >>> part_names(["find", "file.read", "file_read"])
        {'find': 'find', 'file.read': 'file_read_2', 'file_read': 'file_read'}
    """
    names = list(names)
    made = {name: name for name in names if name and "." not in name}
    taken = set(made)
    for name in names:
        if name not in made:
            wish = part = name.replace(".", "_") or "_"
            n = 1
            while part in taken:
                n += 1
                part = f"{wish}_{n}"
            made[name] = part
            taken.add(part)
    return {name: made[name] for name in names}


def as_function(tool: Any) -> Any:
    """The description of a tool in the form of OpenAI's API, of one as a server of MCP or Anthropic's API has it.

    One that a client of MCP has made an object of is taken, too. Anything else is given as it is.

    Example:
        >>> as_function({"name": "order", "description": "Finds it.", "inputSchema": {"type": "object"}})["function"]
        {'name': 'order', 'description': 'Finds it.', 'parameters': {'type': 'object'}}
    """
    if not isinstance(tool, Mapping):
        if callable(tool) or not isinstance(getattr(tool, "inputSchema", None), Mapping):
            return tool
        tool = {key: getattr(tool, key, None) for key in ("name", "description", "inputSchema")}
    schema = tool.get("inputSchema", tool.get("input_schema"))
    if not isinstance(schema, Mapping) or "name" not in tool:
        return tool
    told = {"name": tool["name"], "description": tool.get("description") or "", "parameters": schema}
    return {"type": "function", "function": told}


def description_problem(tool: Mapping[str, Any], *, flat: bool) -> str:
    """What is wrong with the description of a tool, with the repair; "" for nothing that is known here.

    Args:
        tool: as in OpenAI's API; other types than functions are the endpoint's own.
        flat: whether the name may stand beside the type, as the Responses API has it.

    Example:
        >>> description_problem({"type": "function", "name": "order"}, flat=False)
        'has its name beside the type; write {"type": "function", "function": {"name": "...", "parameters": {...}}}'
        >>> description_problem({"type": "function", "function": {"name": "order"}}, flat=False)
        ''
    """
    inner = tool.get("function")
    named = isinstance(inner, Mapping) and isinstance(inner.get("name"), str) and inner["name"] != ""
    if not isinstance(tool.get("type"), str):
        return f"has no type; write {_FORM}"
    if tool["type"] != "function" or named or (flat and isinstance(tool.get("name"), str)):
        return ""
    return f"has {'its name beside the type' if 'name' in tool else 'no name'}; write {_FORM}"


_FORM = '{"type": "function", "function": {"name": "...", "parameters": {...}}}'


def inside_of(tool: Mapping[str, Any]) -> Any:
    """The part of a description that has name, description and parameters: the Responses API has them beside the type.

    Example:
        >>> inside_of({"type": "function", "function": {"name": "order"}})
        {'name': 'order'}
    """
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def arguments_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What a description says of each argument of a function, by their names."""
    parameters = inside_of(tool).get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return properties if isinstance(properties, dict) else {}


def _names_in(path: Sequence[Any]) -> tuple[list[str], bool]:
    """The names that its author gave on a path into a description of a tool, and whether the path ends with one.

    What stands below "properties" is a name, be it that of an argument called "properties" or "description".
    """
    names: list[str] = []
    is_name = is_next = False
    for key in path:
        is_name, is_next = is_next, not is_next and key in _PROPERTIES
        if is_name:
            names.append(str(key))
    return names, is_name


def _paths(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each leaf, in the order of `pytree.flatten`."""
    if not pytree.is_container(tree):
        yield above
        return
    for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from _paths(part, (*above, key))
