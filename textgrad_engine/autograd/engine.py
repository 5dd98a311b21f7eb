"""The backward pass: iterative, concurrent, each node once, in an order that depends on the graph alone.

NOTE [Order of feedback]
    Nodes are numbered by a depth-first postorder walk from the roots along the edges, roots and edges in order. The
    feedback that reaches one place is sorted by (number of the node that sent it, position of the edge), with a root's
    own gradient first. So it does not depend on which call finished first, nor on hashing or ids.

NOTE [Rank]
    Where a level above a `vmap` has recorded what rules computed for each example (see ``rules.py``), the graph holds
    nodes of each example, and nodes that all share. So that an example's feedback is in the order that it would have
    alone, nodes are sorted by their rank, which comes from a walk for each example (`walk.py`); everywhere else a
    node's number is its rank. Examples whose rules speak of different things may have the same shared nodes in
    different orders: where their feedback meets, it is taken apart and put in the order of each (`InOrder`). And the
    nodes that take batches apart and put them together have no place in the order: what passes them keeps the place of
    the node that sent it.

NOTE [Zero]
    A gradient is a list of feedback items; items whose text is empty are dropped when they arrive. A node all of whose
    output gradients are empty lists is not run: it sends empty lists on. The gradient that a loss begins with
    (`start`) has no text and is no zero.

NOTE [All or nothing]
    Leaves, retained gradients and captured ones are written when the last node is through, and the graph is freed then;
    a pass that fails leaves everything as it was. Hooks: see NOTE [When hooks run] in `hooks.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from textgrad_engine import dispatch
from textgrad_engine.autograd.arguments import needs_by_argument
from textgrad_engine.autograd.backward_rules import Backward, InOrder, RuleCall, run_together
from textgrad_engine.autograd.blame import Blame
from textgrad_engine.autograd.context import FREED, Context, any_context
from textgrad_engine.autograd.forgiving import FORGIVING
from textgrad_engine.autograd.grad_mode import set_grad_enabled
from textgrad_engine.autograd.gradient import Items, without_zeros
from textgrad_engine.autograd.graph import POST, PRE, AccumulateGrad, FunctionNode, GradientEdge, Node
from textgrad_engine.autograd.hooks import MultiGradHook, after_rule, before_rule, on_gradient
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.reach import reach_of
from textgrad_engine.autograd.rules import run_rule
from textgrad_engine.autograd.waiting import BEGIN, Waiting
from textgrad_engine.autograd.walk import SETTLED, Contribution, Roots, Visit, place_of, plan
from textgrad_engine.autograd.write import write
from textgrad_engine.dispatch import Call
from textgrad_engine.errors import AutogradError


def run_backward(
    roots: Roots,
    *,
    retain_graph: bool,
    create_graph: bool,
    captures: Sequence[GradientEdge] | None,
    accumulate: bool,
) -> dict[GradientEdge, Items]:
    """Carry gradients from the roots to the leaves.

    Args:
        roots: where the pass begins.
        retain_graph: keep what the nodes saved.
        create_graph: record the operations of the backward rules.
        captures: only what leads to these edges is visited; None stands for all leaves.
        accumulate: append to the leaves' `.grad`; False leaves them alone.

    Returns:
        The gradient at each of `captures`.
    """
    with set_grad_enabled(create_graph):
        work = Pass(roots, captures)
        work.run()
        return work.commit(accumulate=accumulate, retain_graph=retain_graph, retained=accumulate)


def run_on_tape(roots: Roots, targets: Sequence[GradientEdge]) -> dict[GradientEdge, Items]:
    """The gradients at some edges of the tape of a transform; the grad mode stays, so that an outer one records."""
    work = Pass(roots, targets)
    work.run()
    return work.commit(accumulate=False, retain_graph=True, retained=True)


class Pass:
    """One backward pass; see the notes at the top of this file."""

    def __init__(
        self,
        roots: Roots,
        captures: Sequence[GradientEdge] | None,
    ) -> None:
        self._captured: dict[GradientEdge, Items] = {edge: [] for edge in captures or ()}
        self._all_wanted = captures is None
        self._visits, self._order, self._example_orders = plan(roots.nodes, captures)
        self._ready: list[Visit] = []
        self._waiting = Waiting()
        self._groups: dict[Any, list[Visit]] = {}
        self._wave: list[Visit] = []
        self._forgiving = FORGIVING.get()
        self._forgiven: list[tuple[Visit, BaseException]] = []
        self._blame: Blame | None = None
        self._before_prehooks: dict[Node, Sequence[Items]] = {}
        self.multi: dict[MultiGradHook, Any] = {}
        self._roots = roots.nodes
        self._reach = reach_of(self._visits, roots.nodes, captures) if LAYERS.get() else None
        self._first: dict[Visit, None] = {}
        self._begin_at(roots)

    def _begin_at(self, roots: Roots) -> None:
        first = self._first
        for position, (node, output_nr, item) in enumerate(zip(*roots)):
            visit = self._visits[node]
            if visit.gradients is not None:
                if item is not None:
                    visit.gradients.append((-1, position, 0, output_nr, item))
                if not visit.waits_for:
                    first[visit] = None
        for visit in first:
            self._await_forward(visit)

    def _await_forward(self, visit: Visit) -> None:
        """A node may begin when its own forward is done."""
        call = visit.node.call
        if call is None:
            self._ready.append(visit)
        elif not call.done:
            if self._blame is None or self._blame.still_waits(visit):
                self._waiting.for_forward(visit, call)
        elif call._error is None:
            visit.node.call = None  # type: ignore[misc]  # a FunctionNode; and the call has told all that it will
            self._ready.append(visit)
        else:
            self._failed(visit, call._error)

    def run(self) -> None:
        """Run every needed node once.

        Raises:
            BaseException: what a rule, a hook or a forward raised; of several, see NOTE [Blame] in `blame.py`.
        """
        token = dispatch.asked_from.set(dispatch.caller_line())
        try:
            self._run()
        finally:
            dispatch.asked_from.reset(token)
        if self._forgiving is not None and self._forgiven:
            place = self._blaming().place
            in_order = sorted(self._forgiven, key=lambda each: place(each[0]))
            self._forgiving.forgiven += [(visit.node, error) for visit, error in in_order]

    def _run(self) -> None:
        blocking_is_wrong = dispatch.in_loop_thread()
        while True:
            while self._ready:
                visit = self._ready.pop()
                if self._blame is not None and not self._blame.may_begin(visit):
                    continue
                try:
                    self._begin(visit)
                except Exception as error:
                    self._fail(error, visit)
                if len(self._wave) >= _WAVE:
                    self._begin_wave()
                if not self._waiting.events.empty():
                    self._waiting.take_in()
            if self._wave:
                self._begin_wave()
                continue
            if not self._waiting.visits:
                if self._blame is not None:
                    self._blame.end()
                if not self._groups:
                    return
                self._flush_groups()
                continue
            if blocking_is_wrong:
                raise dispatch.would_wait_for_itself("backward waits for feedback", "await variable.abackward(...)")
            visit = self._waiting.next()
            if visit not in self._waiting.visits:  # it comes behind what has failed
                continue
            self._waiting.visits.remove(visit)
            if visit.error is not None:
                self._failed(visit, visit.error)
            elif visit.outcome is BEGIN:
                self._await_forward(visit)
            elif visit.outcome is not SETTLED:
                outcome, visit.outcome = visit.outcome, None
                self._receive(visit, outcome[visit.node])
            elif visit.node.hooks:  # type: ignore[attr-defined]  # a FunctionNode: no other has a rule
                self._pass_on(visit)
            else:
                self._deliver(visit)

    def _begin(self, visit: Visit) -> None:
        """All feedback on a node's outputs has arrived: put it in order, then run the node's rule or pass it by."""
        node = visit.node
        sent, visit.gradients = visit.gradients or [], None
        if len(sent) > 1:
            sent.sort(key=place_of)
        arrived = []
        by_output = None if node.num_outputs == 1 else _by_output(sent)
        for number in range(node.num_outputs):
            contributions = sent if by_output is None else by_output.get(number, [])
            if len(contributions) > 1:
                contributions = self._ordered_for_examples(node, contributions)
            items = []
            for one in contributions:
                items.append(one[4])  # noqa: PERF401  a comprehension would cost a frame
            items = without_zeros(items)
            if node.variable._hooks if type(node) is AccumulateGrad else node.hooks:  # type: ignore[attr-defined]
                items = self._hooked(node, number, items)
            arrived.append(items)
            if self._captured and (edge := GradientEdge(node, number)) in self._captured:
                self._captured[edge] = items
        visit.arrived = arrived
        if isinstance(node, AccumulateGrad) or not visit.needed:
            return
        assert isinstance(node, FunctionNode)
        if node.hooks and node.hooks.get(PRE) and any(visit.arrived):
            self._before_prehooks[node] = visit.arrived
            visit.arrived = before_rule(node, visit.arrived)
        if not any(visit.arrived):
            self._pass_zeros(visit)
            return
        if node.ctx is None:
            raise AutogradError(f"{node.name()}: {FREED}")
        if node.function.of_batch:
            self._pass_examples(visit, sent)
            return
        ctx = node.ctx if type(node.ctx) is Context else any_context(node.ctx)
        group = node.function.backward_group(ctx)
        if group is None:
            self._call_rule([visit], together=False)
        elif group == ():
            self._wave.append(visit)  # there is nobody to wait for
        else:
            self._groups.setdefault(group, []).append(visit)

    def _ordered_for_examples(self, node: Node, contributions: list[Contribution]) -> list[Contribution]:
        """Where examples of a batch have their feedback in different orders, give each its own; see NOTE [Rank]."""
        orders = self._example_orders
        if orders is None or (isinstance(node, FunctionNode) and node.function.of_batch):
            return contributions
        if orders.differ([one[0] for one in contributions]):
            items = run_rule(InOrder(contributions, orders, orders.inside[node]))
            return [(*contributions[0][:4], item) for item in items]
        return contributions

    def _hooked(self, node: Node, number: int, items: Items) -> Items:
        if isinstance(node, FunctionNode):
            hooks = node.hooks.get(number) if node.hooks is not None else None
        else:
            hooks = node.variable._hooks  # type: ignore[attr-defined]  # the other kind is AccumulateGrad
        return on_gradient(self, GradientEdge(node, number), hooks, items) if hooks else items

    def reaches(self, edge: GradientEdge) -> bool:
        """Whether the gradient at an edge is computed in this pass."""
        visit = self._visits.get(edge.node)
        return visit is not None and (visit.needed or edge in self._captured)

    def _call_rule(self, visits: list[Visit], *, together: bool) -> None:
        """Run the rule of a node, or of several that share a call."""
        try:
            outcome = run_rule(Backward([self._rule_call(visit) for visit in visits], together))
        except Exception as error:
            self._fail(error, *visits)
            return
        for visit in visits:
            if isinstance(outcome, Call):
                self._waiting.for_rule(visit, outcome)
            else:
                self._receive(visit, outcome[visit.node])

    def _begin_wave(self) -> None:
        """Run the rules of nodes that share no call: of many at once each takes fewer steps."""
        wave, self._wave = self._wave, []
        if self._blame is not None:
            wave = list(filter(self._blame.may_begin, wave))
        if LAYERS.get():
            for visit in wave:
                self._call_rule([visit], together=True)
            return
        for _, visits in itertools.groupby(wave, key=attrgetter("node.function")):
            part = list(visits)
            try:
                found = run_together([self._rule_call(visit) for visit in part])
            except Exception as error:
                self._fail(error, *part)
                continue
            for visit, returned in zip(part, found):
                self._receive(visit, returned)

    def _rule_call(self, visit: Visit) -> RuleCall:
        node = visit.node
        assert isinstance(node, FunctionNode)
        assert node.ctx is not None
        needs = None
        if not self._all_wanted:
            needs = needs_by_argument(node.layout, [target is not None for target in visit.targets])
        return RuleCall(node, node.ctx, visit.arrived, visit.targets, needs, self._reach)

    def _receive(self, visit: Visit, returned: list[Items]) -> None:
        """A rule has returned: go on when the text of its gradients is there."""
        node = visit.node
        assert isinstance(node, FunctionNode)
        visit.returned = returned
        if not node.hooks and node.retained is None:
            visit.arrived = ()  # of a large graph the collector has then less to look at
        pending: list[Call] = []
        for items in visit.returned:
            for item in items:
                if item._call is not None and item._layer is None:
                    pending.append(item._call)
                elif item._call is not None:
                    pending += item._pending()
        if len(pending) == 1:
            self._waiting.visits.add(visit)
            visit.tell = self._waiting.tell
            pending[0].on_done(visit)
        elif pending:
            self._waiting.for_texts(visit, pending)
        elif node.hooks:
            self._pass_on(visit)
        else:
            self._deliver(visit)

    def _failed(self, visit: Visit, error: BaseException) -> None:
        """What a node waited for has failed, and so does the pass, unless somebody forgives it.

        When it is forgiven, nothing is said behind this node.
        """
        if self._forgiving is not None and self._forgiving.passes_over(visit.node, error):
            self._forgiven.append((visit, error))
            self._pass_zeros(visit)
        else:
            self._fail(error, visit)

    def _fail(self, error: BaseException, *visits: Visit) -> None:
        blame = self._blame = self._blaming()
        for visit in visits:
            blame.note(visit, error)
        self._waiting.visits = set(filter(blame.still_waits, self._waiting.visits))

    def _blaming(self) -> Blame:
        return self._blame or Blame(self._roots, self._first)

    def _pass_zeros(self, visit: Visit) -> None:
        visit.returned = [[] for _ in visit.node.edges]
        self._deliver(visit)

    def _pass_on(self, visit: Visit) -> None:
        """The gradients of a rule are there: the node's hooks see them before they go on."""
        node = visit.node
        if isinstance(node, FunctionNode) and node.hooks is not None and node.hooks.get(POST):
            try:
                visit.returned = after_rule(node, visit.returned, visit.arrived)
            except Exception as error:
                self._fail(error, visit)
                return
        self._deliver(visit)

    def _deliver(self, visit: Visit) -> None:
        """Hand a node's gradients to the nodes that its inputs came from."""
        node, targets, returned = visit.node, visit.targets, visit.returned
        edges = node.edges
        visit.targets = visit.returned = ()
        for position, target in enumerate(targets):
            if target is not None:
                if items := returned[position]:
                    nr = edges[position].output_nr  # type: ignore[union-attr]  # it leads to the target
                    assert target.gradients is not None
                    for item in items:
                        target.gradients.append((visit.rank, position, visit.number, nr, item))
                target.waits_for -= 1
                if target.waits_for == 0:  # its forward is done by now, unless the one behind it never read its value
                    self._await_forward(target)

    def _pass_examples(self, visit: Visit, sent: Sequence[Contribution]) -> None:
        """Take a batch of feedback apart, or put it together, piece by piece; see NOTE [Rank]."""
        by_place: dict[tuple[int, int], list[Items]] = {}
        for rank, position, _, number, item in sorted(sent, key=itemgetter(3)):
            if (rank, position) not in by_place:
                by_place[rank, position] = [[] for _ in range(visit.node.num_outputs)]
            by_place[rank, position][number].append(item)
        whole = self._rule_call(visit)
        for (rank, position), arrived in by_place.items():
            piece = replace(whole, arrived=arrived)
            returned = run_rule(Backward([piece], together=False))[visit.node]
            for edge, target, items in zip(visit.node.edges, visit.targets, returned):
                if edge is not None and target is not None and items:
                    assert target.gradients is not None
                    target.gradients += [(rank, position, visit.number, edge.output_nr, item) for item in items]
        for target in visit.targets:
            if target is not None:
                target.waits_for -= 1
                if target.waits_for == 0:
                    self._await_forward(target)

    def _flush_groups(self) -> None:
        """Nothing else can go on: the nodes that may share a call have all arrived. Nodes are taken in graph order."""
        groups, self._groups = self._groups, {}
        for visits in groups.values():
            visits.sort(key=lambda visit: visit.number)
        for visits in sorted(groups.values(), key=lambda visits: visits[0].number):
            self._call_rule(visits, together=True)

    def commit(self, *, accumulate: bool, retain_graph: bool, retained: bool) -> dict[GradientEdge, Items]:
        """Write what the pass found; returns what was captured.

        Raises:
            CallCancelled: the pass was cancelled.
        """
        dispatch.check_cancelled("this backward", "it leaves no feedback behind")
        prehooked = self._before_prehooks
        write(self._order, prehooked, accumulate=accumulate, retain_graph=retain_graph, retained=retained)
        return self._captured


def _by_output(sent: Sequence[Contribution]) -> dict[int, list[Contribution]]:
    """What was sent to each output of a node, in order."""
    found: dict[int, list[Contribution]] = {}
    for one in sent:
        found.setdefault(one[3], []).append(one)
    return found


_WAVE = 32
"""Rules of nodes that share no call are begun this many at a time: what they have in common is looked up once, and the
processor goes through the same code again while it has it at hand. More of them hold more objects at once."""
