"""The tools that a call offers its model, where Variables stand in their descriptions."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import fences, pytree
from textgrad_engine.autograd import Variable

_DESCRIPTION = "description"
_PROPERTIES = ("properties", "$defs", "definitions")
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
    """

    spec: pytree.TreeSpec
    leaves: tuple[Any, ...]
    descriptions: tuple[Description, ...]

    def tools(
        self, data: Sequence[Any], said: Callable[[Description], Any] | None = None
    ) -> tuple[dict[str, Any], ...]:
        """The tools, as a request has them.

        Args:
            data: what all values of the call hold.
            said: what is put in the place of a description; None for what it holds.
        """
        filled = list(self.leaves)
        for each in self.descriptions:
            filled[each.leaf] = fences.as_text(data[each.at]) if said is None else said(each)
        tools: tuple[dict[str, Any], ...] = pytree.unflatten(self.spec, filled)
        return tools

    def shown(self, data: Sequence[Any], keys: Mapping[int, str]) -> str:
        """The tools as a critic is shown them, a line of JSON each.

        Args:
            data: what all values of the call hold.
            keys: between which tags a description stands, by its position; one that is not among them has none.
        """
        beside = [value for value in data if isinstance(value, str)]
        beside += [leaf for leaf in self.leaves if isinstance(leaf, str)]

        def marked(each: Description) -> str:
            text = fences.as_text(data[each.at])
            return fences.mark(text, keys[each.at], beside) if each.at in keys else text

        return as_lines(self.tools(data, marked))


def as_lines(tools: Sequence[Mapping[str, Any]]) -> str:
    """Descriptions of tools for who reads them: a line of JSON each."""
    return "\n".join([json.dumps(tool, ensure_ascii=False) for tool in tools])


def taken_apart(tools: Sequence[Mapping[str, Any]], first: int) -> tuple[Offered, list[Variable]] | None:
    """Tools with Variables in their descriptions, and these Variables; None where there are none.

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
        if path[-1] != _DESCRIPTION or (len(path) > 1 and path[-2] in _PROPERTIES):
            raise TypeError(
                f"a Variable stands in the tool {name_of_tool(tool)!r} at {'.'.join(map(str, path[1:]))}; only "
                "descriptions are texts that may be trained, so give a text there"
            )
        at = first + len(values)
        descriptions.append(Description(at, number, _key(name_of_tool(tool), path)))
        leaves[number] = None
        values.append(leaf)
    return (Offered(spec, tuple(leaves), tuple(descriptions)), values) if values else None


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


def as_function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description of a tool in the form of OpenAI's API, of one as a server of MCP or Anthropic's API has it.

    Any other is given as it is.

    Example:
        >>> as_function({"name": "order", "description": "Finds it.", "inputSchema": {"type": "object"}})["function"]
        {'name': 'order', 'description': 'Finds it.', 'parameters': {'type': 'object'}}
    """
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
    named = isinstance(inner, Mapping) and isinstance(inner.get("name"), str)
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
    properties = (inside_of(tool).get("parameters") or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _key(tool: str, path: Sequence[Any]) -> str:
    inside = [str(key) for above, key in itertools.pairwise(path) if above in _PROPERTIES]
    return re.sub(r"\W", "_", "_".join([tool, *inside, _DESCRIPTION]))


def _paths(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each leaf, in the order of `pytree.flatten`."""
    if not pytree.is_container(tree):
        yield above
        return
    for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from _paths(part, (*above, key))
