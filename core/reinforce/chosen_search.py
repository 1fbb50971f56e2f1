"""The searches that the settings of a run choose: trees of many games, and the ordinary search."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings, SearchChoice
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.forest.forest_search import ForestSettings
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.search.search import Search


def forest_settings(settings: ReinforceSettings) -> ForestSettings:
    """Settings of the trees for those of a run.

    A field of `SearchChoice` or `Variety` is copied if `ForestSettings` has a field of its name. A test
    checks that this holds for all of `SearchChoice`, but for `kind` and `rescale`, which have other names
    there.
    """
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
