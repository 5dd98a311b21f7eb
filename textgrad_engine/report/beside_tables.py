"""Two runs beside each other, and what a run changed, for people at a terminal and for tools behind a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.money import money
from textgrad_engine.report.beside import Beside, Side, Texts
from textgrad_engine.report.changed import changed_in_lines, how_changed
from textgrad_engine.report.metric_parts import Parts, parts_table, parts_within
from textgrad_engine.report.pairing import Pairing
from textgrad_engine.report.printing import fitted, hanging, indented, open_table, padded, printed, styled, unwrapped
from textgrad_engine.report.view import measured, said
from textgrad_engine.report.words import capital, count, duration, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN_SETTING = 32
"""Characters of a setting's value."""


def render_patches(texts: tuple[Texts, ...], *, terminal: bool, color: bool = False) -> str:
    """The unified diffs one after the other; "" where nothing differs.

    Args:
        texts: what was compared.
        terminal: whether it goes to one; what could be a command to it is replaced then, and else every byte stays.
        color: with the terminal's codes for colors.
    """
    patch = "".join(each.patch for each in texts)
    if not terminal or not patch:
        return patch
    return printed([unwrapped(line, _style(line)) for line in patch.split("\n")[:-1]], 80, color)


def render_beside(found: Beside, *, width: int = 80, terminal: bool = False, color: bool = False) -> str:
    """Two runs beside each other as text; the unified diff of their best texts comes last.

    Args:
        found: the runs.
        width: columns.
        terminal: whether it goes to one, as for `render_patches`.
        color: with the terminal's codes for colors.
    """
    parts: list[RenderableType] = [
        hanging(f"{name}  ", "", f"{side.name}: {side.headline}", "bold") for name, side in zip("AB", found.sides)
    ]
    parts += ["", _scores(found), ""]
    if (metrics := _metrics(found)) is not None:
        parts += parts_table(metrics)
    for pairing in found.pairings:
        parts += _pairing(pairing, found.pairings[-1], width)
    parts += [indented(remark, 2, "dim") for remark in found.remarks]
    parts += [
        "",
        *_settings(found),
        "",
        styled("Cost", "bold"),
        "",
        _usage(found),
        "",
        indented(f"Time: {_times(found)}.", 2),
        "",
    ]
    parts += _prompts(found)
    patches = render_patches(found.texts, terminal=terminal, color=color)
    return printed(parts, width, color) + (f"\n{patches}" if patches else "")


def _scores(found: Beside) -> RenderableType:
    table = open_table()
    for name in ("", "A", "B"):
        table.add_column(name, no_wrap=bool(name))
    first, second = found.sides
    for name, pick in _ROWS.items():
        row = pick(first), pick(second)
        if row != (None, None):
            table.add_row(name, *map(measured, row), style="bold" if name.endswith("best") else None)
    return padded(fitted(table), 2)


_ROWS: dict[str, Any] = {
    "validation, seed": lambda side: side.seed_val,
    "validation, best": lambda side: side.best_val,
    "test, seed": lambda side: side.seed_test,
    "test, best": lambda side: side.best_test,
}


def _metrics(found: Beside) -> Parts | None:
    """What each metric gave of the best texts."""
    first, second = found.sides
    return parts_within(
        [
            ("val A", first.best_val),
            ("val B", second.best_val),
            ("test A", first.best_test),
            ("test B", second.best_test),
        ]
    )


def _pairing(pairing: Pairing, last: Pairing, width: int) -> Iterator[RenderableType]:
    if pairing.comparison is None:
        yield hanging("  ", "  ", f"B against A on test: nothing paired can be said, as {pairing.why}.")
    else:
        compared = pairing.comparison
        on = {"test": "on test", "val": "on validation only, which chose both"}[pairing.on]
        style = {"better": "bold green", "worse": "bold red"}.get(compared.verdict, "bold")
        yield hanging("  ", "  ", f"B against A: {said(compared)} {on}, {plural(compared.n, 'example')}.", style)
        if remark := compared.remark or compared.caveat:
            yield indented(f"{capital(remark)}.", 2, "dim")
        yield from _changed(pairing, width)
    yield from (indented(remark, 2) for remark in pairing.remarks)
    if pairing is last:
        yield ""


def _changed(pairing: Pairing, width: int) -> Iterator[RenderableType]:
    """Which examples got worse with B, and which better; of test examples not how to look at one, as in `compare`."""
    if (found := pairing.changed) is not None and found.some:
        yield from (indented(line, 2) for line in changed_in_lines(found, "", width - 2))
        shown = " `calls RUN --example ID` lists what a run asked about one of them." if pairing.on == "val" else ""
        if how := how_changed([found], tells=""):
            yield indented(f"{how}{shown}", 2, "dim")


def _settings(found: Beside) -> Iterator[RenderableType]:
    if found.unknown and not found.shared:
        yield styled("Settings: unknown, as ", "bold").append(found.unknown, style="not bold")
        return
    if found.unknown:
        both = f"{found.unknown}; both keep {', '.join(found.shared)}"
        yield styled("Settings: not all are known, as ", "bold").append(both, style="not bold")
    if found.unknown and not found.settings:
        yield styled("Settings that both keep: all the same", "bold")
        return
    if not found.settings:
        yield styled("Settings: all the same", "bold")
        return
    yield styled("Settings that differ", "bold")
    yield ""
    table = open_table()
    for name in ("", "A", "B"):
        table.add_column(name, overflow="fold")
    for each in found.settings:
        table.add_row(styled(each.name), styled(_value(each.first)), styled(_value(each.second)))
    yield padded(fitted(table), 2)


def _value(value: Any) -> str:
    """A setting in one short line."""
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= SHOWN_SETTING:
        return text
    return f"{text[: SHOWN_SETTING - 12].rstrip()}… ({count(len(text))} characters)"


def _usage(found: Beside) -> RenderableType:
    table = open_table(gap=2)
    table.add_column("", min_width=10)
    for name in "AB":
        for what in (f"{name} calls", "tokens", "cost"):
            table.add_column(what, justify="right", no_wrap=True)
    names = list(dict.fromkeys(name for side in found.sides for name in side.usage))
    for name in names:
        table.add_row(styled(name), *(cell for side in found.sides for cell in _used(side, name)))
    table.add_row("all", *(cell for side in found.sides for cell in _used(side, "all")), style="bold")
    return padded(fitted(table), 2)


def _used(side: Side, purpose: str) -> tuple[str, str, str]:
    usage = side.total if purpose == "all" else side.usage.get(purpose)
    return ("", "", "") if usage is None else (count(usage.calls), count(usage.total_tokens), money(usage.dollars))


def _times(found: Beside) -> str:
    """How long each took, in words."""
    took = ("unknown" if side.seconds is None else duration(side.seconds) for side in found.sides)
    return ", ".join(f"{name} {each}" for name, each in zip("AB", took))


def _prompts(found: Beside) -> Iterator[RenderableType]:
    differing = [each for each in found.texts if each.patch]
    if not found.texts:
        yield styled("Best prompts: nothing to compare, as one has none", "bold")
        return
    if not differing:
        yield styled("Best prompts: the same", "bold")
        return
    yield styled("Best prompts, line by line", "bold")
    for each in found.texts:
        if each.first is None or each.second is None:
            yield hanging("  ", "  ", f"{each.name}: only {'A' if each.second is None else 'B'} has it")
        elif not each.patch:
            yield hanging("  ", "  ", f"{each.name}: the same")


def _style(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return "bold"
    return {"@": "cyan", "+": "green", "-": "red", "\\": "dim"}.get(line[:1], "")
