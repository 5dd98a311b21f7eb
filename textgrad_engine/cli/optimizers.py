"""The table [optimizer] of a config file: for each optimizer its own keys, types and ranges, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, PrivateAttr, Tag, ValidationInfo, field_validator

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import signature_of
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.optimizer_parts import Schedule, Transforms, transforms_of
from textgrad_engine.cli.settings import Contracts, OfPrompt, Section
from textgrad_engine.cli.user_code import is_spec
from textgrad_engine.optim.beam_search import BeamSearch
from textgrad_engine.optim.bootstrap_demos import BootstrapDemos
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.opro import OPRO
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.pareto_search import ParetoSearch
from textgrad_engine.optim.patch_search import PatchSearch
from textgrad_engine.optim.proposers import Demonstrations, Patch, Proposer, Rewrite, Unaided
from textgrad_engine.optim.random_search import RandomEdits, RandomSearch
from textgrad_engine.optim.search.frontier import Places
from textgrad_engine.optim.tgd import TGD

Groups: TypeAlias = list[dict[str, Any]]
Count = Annotated[int, Field(gt=0)]
Some = Annotated[int, Field(ge=0)]


class BaseSettings(Section):
    """What every optimizer has; a setting that the file does not name has the optimizer's own default."""

    of: ClassVar[type[Optimizer]]
    takes: ClassVar[tuple[str, ...]] = ("max_tokens",)
    """Those of its settings that a search without feedback has, too."""
    has_mode: ClassVar[bool] = False
    """Whether the optimizer itself has a mode; for others it stands for a proposer."""
    idle_in_train: ClassVar[tuple[str, ...]] = ("max_epochs", "batch_size", "feedback_batch_size")
    """The keys of [train] that mean nothing to a search."""

    max_tokens: Count | None = None
    constraints: list[str] | None = None
    contracts: Contracts = Contracts()
    prompts: dict[str, OfPrompt] = Field(default_factory=dict)

    @property
    def way(self) -> str | None:
        """How new texts are written, by its `mode` or by what it does without; None where there is one way alone."""
        return None

    def given(self) -> dict[str, Any]:
        """The settings that the file names, as plain values."""
        return self.model_dump(exclude_none=True, exclude={"name", "contracts", "constraints", "prompts"})

    def groups(self, params: Mapping[str, Variable], contracts: Mapping[str, Sequence[Contract]]) -> Groups:
        """The groups of an optimizer: one of all prompts, or one of each where some have a table of their own.

        Args:
            params: what it trains, by name.
            contracts: what each must keep, by name.
        """
        told = tuple(self.constraints or ())
        if not self.prompts:
            every = next(iter(contracts.values()), ())
            return [{"params": list(params.values()), "constraints": (*told, *every)}]
        found: Groups = []
        for name, variable in params.items():
            own = self.prompts.get(name, OfPrompt())
            constraints = (*told, *(own.constraints or ()), *contracts[name])
            limit = {} if own.max_tokens is None else {"max_tokens": own.max_tokens}
            found.append({"params": [variable], "constraints": constraints, **limit})
        return found

    def make(self, groups: Groups, seed: int) -> Optimizer:
        """The optimizer.

        Args:
            groups: what it trains, with what new texts must keep to, from `groups`.
            seed: of the run.
        """
        return self.of(groups, **{"seed": seed, **self.arguments(seed)})

    def arguments(self, seed: int) -> dict[str, Any]:
        """The settings that the file names, as the optimizer takes them; how examples are chosen is a proposer.

        Args:
            seed: of the run.
        """
        settings = self.given()
        shown = {name: settings.pop(key) for key, name in (("select", "select"), ("show", "k")) if key in settings}
        mode = None if self.has_mode else settings.pop("mode", None)
        if shown or mode == "demonstrations":
            settings["proposer"] = Demonstrations(**shown)
        elif mode is not None:
            settings["proposer"] = _proposer(mode, seed, self.of)
        if (named := settings.pop("transforms", None)) is not None:
            settings["transforms"] = transforms_of(named)
        return settings

    def control(self, groups: Groups, seed: int) -> Optimizer:
        """What stands in its place when it gets no feedback: rewrites that know nothing of it, kept by races."""
        own = {name: value for name, value in self.given().items() if name in self.takes}
        return RandomSearch(groups, Unaided(), seed=seed, **own)


class TGDSettings(BaseSettings):
    """Textual gradient descent."""

    of = TGD
    has_mode = True
    idle_in_train = ()
    name: Literal["TGD"] = "TGD"
    max_edits: Count | None = None
    mode: Literal["patch", "rewrite"] | None = None
    momentum: Some | None = None
    max_feedback_tokens: Count | None = None
    candidates: Count | None = None
    examples: list[str] | None = None
    transforms: Transforms | None = None
    schedule: Schedule | None = None

    @property
    def way(self) -> str | None:
        """Edits, where nothing is said."""
        return self.mode or "patch"

    def make(self, groups: Groups, seed: int) -> Optimizer:
        """The optimizer; nothing in it is drawn."""
        made = TGD(groups, **self.arguments(seed))
        if self.schedule is not None:
            self.schedule.on(made, made.param_groups[0]["max_edits"])
        return made

    def control(self, groups: Groups, seed: int) -> Optimizer:
        """The same optimizer, which is told nothing."""
        return TGD(groups, **self.arguments(seed), use_feedback=False)

    def arguments(self, seed: int) -> dict[str, Any]:
        """The settings as `TGD` takes them; the schedule is set on what they make."""
        settings = super().arguments(seed)
        settings.pop("schedule", None)
        return settings


class PatchSearchSettings(BaseSettings):
    """Patches from several lanes, raced and put together."""

    of = PatchSearch
    takes = ("max_tokens", "max_edits", "momentum", "allowance")
    name: Literal["PatchSearch"]
    lanes: Count | None = None
    batch_size: Count | None = None
    max_edits: Count | None = None
    momentum: Some | None = None
    max_feedback_tokens: Count | None = None
    feedback_batch_size: Count | None = None
    pool: Count | None = None
    allowance: Count | None = None
    most_tries: Count | None = None
    ablate_every: Count | None = None
    transforms: Transforms | None = None


class _Showing(BaseSettings):
    """A search by feedback that may show solved examples instead of asking for texts."""

    mode: Literal["patch", "rewrite", "demonstrations"] | None = None
    select: Literal["label", "nearest"] | None = None
    show: Count | None = None

    @property
    def way(self) -> str | None:
        """Texts written anew, where nothing is said."""
        return self.mode or "rewrite"

    @field_validator("select", "show")
    @classmethod
    def _of_what_is_shown(cls, value: Any, given: ValidationInfo) -> Any:
        if value is not None and given.data.get("mode") != "demonstrations":
            raise ValueError('says which solved examples are shown, and wants mode = "demonstrations"')
        return value


class ParetoSearchSettings(_Showing):
    """GEPA."""

    of = ParetoSearch
    takes = ("max_tokens", "max_edits", "proposals")
    name: Literal["ParetoSearch"]
    batch_size: Count | None = None
    proposals: Count | None = None
    merges: Some | None = None
    frontier: Places | None = None
    max_edits: Count | None = None
    max_feedback_tokens: Count | None = None
    feedback_batch_size: Count | None = None
    transforms: Transforms | None = None


class BeamSearchSettings(_Showing):
    """ProTeGi."""

    of = BeamSearch
    takes = ("max_tokens", "max_edits")
    name: Literal["BeamSearch"]
    beam: Count | None = None
    rounds: Count | None = None
    batch_size: Count | None = None
    gradients: Count | None = None
    errors: Count | None = None
    edits: Count | None = None
    paraphrases: Some | None = None
    successors: Count | None = None
    selection: Literal["rejects", "ucb"] | None = None
    evaluations: Count | None = None
    max_edits: Count | None = None
    max_feedback_tokens: Count | None = None
    transforms: Transforms | None = None


class OPROSettings(BaseSettings):
    """Optimization by prompting."""

    of = OPRO
    name: Literal["OPRO"]
    rounds: Count | None = None
    per_round: Count | None = None
    shown: Count | None = None
    examples: Some | None = None
    score_on: Literal["train", "val"] | None = None
    sample: Count | None = None
    max_feedback_tokens: Count | None = None


class BootstrapDemosSettings(BaseSettings):
    """Solved examples in the prompt."""

    of = BootstrapDemos
    name: Literal["BootstrapDemos"]
    sets: Count | None = None
    bootstrapped: Count | None = None
    labelled: Some | None = None
    least: float | None = None
    select: Literal["label", "nearest"] | None = None
    show: Count | None = None


class RandomSearchSettings(BaseSettings):
    """The control: proposals without feedback."""

    of = RandomSearch
    name: Literal["RandomSearch"]
    mode: Literal["patch", "rewrite", "edits"] = "rewrite"
    proposals: Count | None = None
    max_edits: Count | None = None
    momentum: Some | None = None
    allowance: Count | None = None

    @property
    def way(self) -> str | None:
        """Its mode."""
        return self.mode

    def control(self, groups: Groups, seed: int) -> Optimizer:
        """Itself: it gets no feedback in any case."""
        return self.make(groups, seed)


class OwnSettings(BaseSettings):
    """An optimizer of the user's own: a class, or a function that makes one, which gets all other keys by name."""

    model_config = ConfigDict(extra="allow")

    of = Optimizer
    idle_in_train = ()
    name: str
    _factory: Callable[..., Any] | None = PrivateAttr(default=None)

    def take(self, factory: Any) -> None:
        """Know what makes the optimizer.

        Args:
            factory: what the name stands for.

        Raises:
            TypeError: it cannot be called with what the file says.
        """
        if not callable(factory):
            raise TypeError(f"that cannot be called: {factory!r:.80}")
        of_others = {"constraints": bool(self.constraints), "prompts": bool(self.prompts)}
        for key, given in {**of_others, "contracts": self.contracts != Contracts()}.items():
            if given:
                raise TypeError(f"{key} is for the library's own optimizers; what yours must keep is said in its code")
        try:
            signature_of(factory).bind([], **self._settings(factory, 0))
        except ValueError:  # what is written in C may not tell what it takes
            pass
        except TypeError as error:
            raise TypeError(
                f"that is called with the parameters and what else [optimizer] says, and takes "
                f"{signature_of(factory)}: {error}"
            ) from None
        self._factory = factory

    def make(self, groups: Groups, seed: int) -> Optimizer:
        """The optimizer; it has no settings of the library's in its groups.

        Raises:
            TypeError: what was made is none.
        """
        assert self._factory is not None
        params = [variable for group in groups for variable in group["params"]]
        made = self._factory(params, **self._settings(self._factory, seed))
        if not isinstance(made, Optimizer):
            raise TypeError(f"that gave no optimizer but {made!r:.80}; derive it from optim.Optimizer, or give one")
        return made

    def _settings(self, factory: Callable[..., Any], seed: int) -> dict[str, Any]:
        """The keys of the file, and the seed of the run where it is taken."""
        try:
            takes = signature_of(factory).parameters
        except ValueError:
            takes = {}  # type: ignore[assignment]
        return {**({"seed": seed} if "seed" in takes else {}), **self.given()}


_ALL: tuple[type[BaseSettings], ...] = (
    TGDSettings,
    PatchSearchSettings,
    ParetoSearchSettings,
    BeamSearchSettings,
    OPROSettings,
    BootstrapDemosSettings,
    RandomSearchSettings,
)
_BY_NAME = dict(zip(NAMES, _ALL, strict=True))


def settings_for(name: str) -> type[BaseSettings] | None:
    """The table of an optimizer; None when there is none of that name."""
    return OwnSettings if is_spec(name) else _BY_NAME.get(name)


_OWN = "module:name"
"""The tag of an optimizer of the user's own, as errors list it."""


def _name_in(table: Any) -> str:
    name = str(table.get("name", NAMES[0]) if isinstance(table, dict) else getattr(table, "name", NAMES[0]))
    return _OWN if is_spec(name) else name


AnyOptimizer: TypeAlias = Annotated[
    Annotated[TGDSettings, Tag("TGD")]
    | Annotated[PatchSearchSettings, Tag("PatchSearch")]
    | Annotated[ParetoSearchSettings, Tag("ParetoSearch")]
    | Annotated[BeamSearchSettings, Tag("BeamSearch")]
    | Annotated[OPROSettings, Tag("OPRO")]
    | Annotated[BootstrapDemosSettings, Tag("BootstrapDemos")]
    | Annotated[RandomSearchSettings, Tag("RandomSearch")]
    | Annotated[OwnSettings, Tag(_OWN)],
    Discriminator(_name_in),
]
"""The table of any of them, told apart by ``name``."""


def _proposer(mode: str, seed: int, of: type[Optimizer]) -> Proposer:
    rewrite = Unaided() if of is RandomSearch else Rewrite()
    proposers: dict[str, Proposer] = {"patch": Patch(), "rewrite": rewrite, "edits": RandomEdits(seed)}
    return proposers[mode]
