"""Settings of self-play and of a run that learns from it.

`variant-ai reinforce` reads them from a YAML file (`--settings`) and from options, and writes them,
resolved, to `settings.yaml` of the run folder. Every word is a field of one of these models.
`forest_settings` and `plain_search` make the searches that they choose.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

if TYPE_CHECKING:
    from variant_ai.core.inference.interface import Evaluator
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.forest.forest_search import ForestSettings
    from variant_ai.core.search.search import Search
    from variant_ai.core.spec.schema import VariantSpec

START_RANDOM = "random"
"""Start from random weights."""
INT8 = "int8"
"""Precision for which each net is written a second time."""
CHANGEABLE = (
    "minutes",
    "generations",
    "threads",
    "evaluator",
    "precision",
    "device",
    "ladder",
    "cluster",
)
"""Settings that may differ when a run is resumed."""


class Section(BaseModel):
    """Base of all sections: frozen, and an unknown word is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class SearchChoice(Section):
    """The search that chooses the moves of a game.

    `forest_settings` copies fields to those of `ForestSettings` with the same names. `SlowSelfPlay`
    says which ones it ignores.
    """

    kind: Literal["gumbel", "puct"] = "gumbel"
    """Search that chooses the moves: `gumbel` (at up to about 200 nodes) or `puct`."""
    nodes: int = Field(default=16, ge=1, le=4096)
    """Visits of a search."""
    considered: int = Field(default=16, ge=1, le=512)
    """Gumbel: greatest number of root moves that are compared (m)."""
    visit_offset: float = Field(default=50.0, ge=0)
    """Gumbel: added to the greatest number of visits in sigma."""
    value_scale: float = Field(default=1.0, gt=0)
    """Gumbel: c_scale of sigma."""
    rescale: Literal["fixed", "minmax"] = "fixed"
    """Gumbel: values as they are, in [0, 1], or rescaled to the least and greatest of the position."""
    noise: bool = True
    """Gumbel noise, or Dirichlet noise on the root priors of PUCT; off in matches."""
    noise_epsilon: float = Field(default=0.25, ge=0, le=1)
    """PUCT: share of the noise in the root priors."""
    noise_alpha: float | None = Field(default=None, gt=0)
    """PUCT: concentration of the noise; by default 10 / number of legal moves (with rules that are not
    compiled, `noise_alpha` of the spec)."""
    fpu_reduction: float = Field(default=0.2, ge=0, le=2)
    """PUCT: how far the value of untried moves lies below that of their parent; 0 at a root with noise."""
    cpuct: float = Field(default=1.5, gt=0)
    """PUCT: exploration constant."""
    forced_playouts: float = Field(default=2.0, ge=0)
    """PUCT: k of sqrt(k * P * N), the least visits of a root move; 0: none."""
    full_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the moves with all nodes; the others get `fast_nodes` and teach no policy
    ([KataGo], playout cap randomisation)."""
    fast_nodes: int = Field(default=0, ge=0)
    """Visits of the other moves, at most `nodes`; 0: a sixth of `nodes`."""
    look_for_material: bool = False
    """Let the rules look for material at leaves, if the spec has `piece_gains` or `piece_gain_share`."""

    @field_validator("fast_nodes")
    @classmethod
    def _fewer(cls, fast: int, info: ValidationInfo) -> int:
        nodes = info.data.get("nodes", fast)
        if fast > nodes:
            raise ValueError(f"fast moves have at most the {nodes} visits of `nodes`")
        return fast


Plies = Annotated[int, Field(ge=0, le=1000)]


class Variety(Section):
    """Settings that make games differ.

    Some are copied to `ForestSettings` by name, like those of `SearchChoice`. `SlowSelfPlay` says
    which ones it ignores.
    """

    openings: str | None = None
    """File of openings, one for each game at random: positions (.epd, .fen), lines of moves or games, a
    Polyglot book (.bin). Random plies follow."""
    opening_plies: int = Field(default=16, ge=1)
    """Plies of an opening, if its file has moves."""
    random_plies: tuple[Plies, Plies] = (0, 4)
    """Least and greatest number of uniformly random plies at the start; they teach nothing."""
    sampled_plies: int = Field(default=10, ge=0)
    """Plies in which moves are sampled from the policy target instead of the best one being played."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of the first sampled ply."""
    temperature_end: float = Field(default=1.0, gt=0)
    """Temperature of the last sampled ply; it changes linearly between them."""
    branch_share: float = Field(default=0.0, ge=0, le=1)
    """Share of games that start from a random position of an earlier game of the same run."""
    scattered_share: float = Field(default=0.0, ge=0, le=1)
    """Share of games that start with the pieces on random squares, some of them missing: for variants whose
    random games hardly ever end with a win."""
    max_plies: int = Field(default=512, ge=1)
    """Length at which a game is ended; its result is no value target."""
    draw_penalty: float = Field(default=0.0, ge=0, le=1)
    """Value of a drawn game for both sides is minus this."""
    resign_below: float | None = Field(default=None, gt=-1, lt=0)
    """Root value under which a side resigns; by default never."""
    resign_plies: int = Field(default=4, ge=1)
    """Plies in a row in which both sides' root values must agree on the winner."""
    played_out: float = Field(default=0.1, ge=0, le=1)
    """Share of games without resignation, to measure how often it would have been wrong."""

    @field_validator("random_plies")
    @classmethod
    def _ordered(cls, plies: tuple[int, int]) -> tuple[int, int]:
        if plies[0] > plies[1]:
            raise ValueError("the least number comes first, then the greatest")
        return plies


class Window(Section):
    """Replay window N = min(T, c * (1 + beta * ((T / c)^alpha - 1) / alpha)) of T positions."""

    size: int = Field(default=50_000, ge=1)
    """c, in positions: until this many are recorded, the window has all of them."""
    alpha: float = Field(default=0.75, gt=0, le=1)
    """Exponent of the growth."""
    beta: float = Field(default=0.4, ge=0)
    """Growth of the window at size c."""


class Learning(Section):
    """The learner."""

    net: str = "alphazero-8v-map"
    """Network by name, as `variant-ai train --net` takes it."""
    size: dict[str, int | bool] = Field(
        default_factory=lambda: {
            "blocks": 3,
            "channels": 32,
            "value_channels": 4,
            "value_hidden": 64,
        }
    )
    """Options of the network; those that are left out have these values, with another `net` its defaults."""
    optimiser: str = "adamw"
    """Optimiser by name, as `variant-ai train --optimiser` takes it."""
    lr: float = Field(default=2e-3, gt=0)
    """Learning rate at the start of the run."""
    lr_end: float | None = Field(default=2e-4, gt=0)
    """Rate at the end of the run, reached exponentially; null: constant."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Weight decay of the optimiser."""
    batch: int = Field(default=256, ge=2)
    """Samples of a step."""
    samples_per_position: float = Field(default=4.0, gt=0)
    """Samples drawn for each new position."""
    ema_steps: int = Field(default=500, ge=0)
    """Span of the moving average of the weights, in steps; it is what plays. 0: none."""
    value_weight: float = Field(default=1.0, ge=0)
    """Weight of the value in the loss."""
    root_value_share: float = Field(default=0.25, ge=0, le=1)
    """lambda: value target = (1 - lambda) * result + lambda * root value."""
    root_value_share_end: float | None = Field(default=None, ge=0, le=1)
    """lambda at the end of the run, reached linearly; by default constant."""
    mirror: bool = True
    """Also learn from left-right images, if the variant is symmetric."""
    checkpoint_every: int = Field(default=500, ge=1)
    """Steps from one checkpoint to the next; a kill loses no more than these."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of training."""


class Mixture(Section):
    """A store of other games that the learner also samples from."""

    store: str
    """Path of the store."""
    weight: float = Field(gt=0, lt=1)
    """Share of the samples. The window has the rest, so a new position is sampled that much less often
    than `samples_per_position`."""


class Ladder(Section):
    """Matches that measure the nets."""

    games: int = Field(default=40, ge=0)
    """Games of each pairing, each opening with both colours."""
    nodes: int = Field(default=64, ge=0, le=4096)
    """Nodes a move; 0: the raw policy, one evaluation and no search."""
    opponents: tuple[Annotated[int, Field(ge=1)], ...] = (1, 4, 16)
    """Generations back that the newest net plays."""
    every: int = Field(default=1, ge=1)
    """Generations from one measurement to the next."""
    opening_plies: int = Field(default=4, ge=0)
    """Random plies of each opening."""
    engines: tuple[str, ...] = ()
    """Outside players with their limits, as `variant-ai match` takes them: `fairy-stockfish;nodes=10`,
    `random`."""
    cpu_share: float = Field(default=0.1, ge=0, le=1)
    """Greatest share of the run's CPU time; matches that would exceed it are left out."""
    gate: bool = False
    """A new net generates games only if it scores at least half against the one that does."""


class Cluster(Section):
    """Players on a Ray cluster (`--ray`)."""

    players: int | None = Field(default=None, ge=1)
    """Number of players on a cluster; by default as many as there are processors for, and more when machines join."""
    player_cpus: float = Field(default=1.0, gt=0)
    """Processors of a player."""
    player_gpus: float = Field(default=0.0, ge=0)
    """GPUs of a player, a share of one or several."""
    learner_cpus: float = Field(default=1.0, ge=0)
    """Processors that are left to learner and matches."""
    seconds: float = Field(default=10.0, gt=0)
    """Time after which a player returns its games and gets the newest net."""


class ReinforceSettings(Section):
    """All settings of a run."""

    variant: str
    """Name or file of the spec."""
    seed: int = Field(default=0, ge=0, lt=1 << 31)
    """Seed of weights, games and samples."""
    generations: int | None = Field(default=None, ge=1)
    """Generations of the whole run."""
    minutes: float | None = Field(default=None, gt=0)
    """Budget in minutes of CPU time, of all threads together, over all resumes."""
    start: str = START_RANDOM
    """Net to start from: random weights, the one that comes with the variant, a run or a net."""
    games_at_once: int = Field(default=64, ge=1, le=4096)
    """Games that are played at once, in shared batches."""
    positions: int = Field(default=8_000, ge=1)
    """Recorded positions of a generation."""
    evaluator: str = "auto"
    """Evaluator of self-play, as `variant-ai play --evaluator` takes it; `auto` is OpenVINO on a CPU, and on a
    GPU onnxruntime or, if that has no support for it, torch, without a measurement."""
    precision: str = "auto"
    """Precision of self-play, as `variant-ai play --precision` takes it. `int8`: each net is written in int8 too, calibrated on
    the games of its generation, for processors without bf16; the first net plays in fp32."""
    device: str = "cpu"
    """Device of self-play and learner: cpu, cuda or cuda:N. That of players on a cluster follows from
    `cluster.player_gpus`."""
    threads: int = Field(default=0, ge=0)
    """Threads on the CPU; 0: one for each processor."""
    search: SearchChoice = SearchChoice()
    variety: Variety = Variety()
    window: Window = Window()
    learning: Learning = Learning()
    mixture: tuple[Mixture, ...] = ()
    ladder: Ladder = Ladder()
    cluster: Cluster = Cluster()

    @field_validator("mixture")
    @classmethod
    def _leave_some(cls, mixture: tuple[Mixture, ...]) -> tuple[Mixture, ...]:
        if sum(part.weight for part in mixture) >= 1:
            raise ValueError(
                "the weights add up to 1 or more; the games of self-play have the rest"
            )
        return mixture


def forest_settings(settings: ReinforceSettings) -> ForestSettings:
    """Settings of the trees for those of a run.

    A field of `SearchChoice` or `Variety` is copied if `ForestSettings` has a field of its name. A test
    checks that this holds for all of `SearchChoice`, but for `kind` and `rescale`, which have other names
    there.
    """
    from variant_ai.core.search.forest.forest_search import ForestSettings

    search = settings.search
    shared = {field.name for field in fields(ForestSettings)}
    return ForestSettings(
        gumbel=search.kind == "gumbel",
        minmax=search.rescale == "minmax",
        **search.model_dump(include=shared),
        **settings.variety.model_dump(include=shared),
    )


def plain_search(
    spec: VariantSpec, evaluator: Evaluator, search: SearchChoice, *, seed: int, rules: Rules
) -> Search:
    """Make the ordinary search, for rules that are not compiled.

    It is PUCT for each `kind`. Of `search` it uses `cpuct`, `fpu_reduction`, `noise`,
    `noise_epsilon` and `noise_alpha`; the caller limits it to `nodes`. Other fields have no effect.
    """
    from variant_ai.core.search.search import Search
    from variant_ai.core.search.settings import SearchParams, self_play_settings

    alpha: dict[str, Any] = {}
    if search.noise_alpha is not None:
        alpha["noise_alpha"] = search.noise_alpha
    params = SearchParams.of(
        spec,
        **alpha,
        **self_play_settings(cpuct=search.cpuct, reduction=search.fpu_reduction),
        look_for_material=False,
        batch_size=1,
        reuse_tree=False,
        noise_epsilon=search.noise_epsilon if search.noise else 0.0,
        memory_mb=max(16, search.nodes // 8),  # an eighth of it is for the graph
        seed=seed,
    )
    return Search(spec, evaluator, params, rules=rules)
