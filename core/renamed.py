"""Old names of modules, which can still be imported: with a DeprecationWarning, until version 0.3.

They are the names that plugins of API 1 could import, and those that the manual gave to plugins since.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_MOVED = (
    # old package, new package, modules: `name`, or `old=new` if the name has changed as well
    ("specs", "core", "errors"),
    (
        "specs",
        "core.spec",
        "betza checks=consistency difference=hashing fairy_names=catalogue hashing index=catalogue inheritance json_schema=files.json_schema loader located=files.yaml_reader planes=plane_layout schema start_checks=start_position zones",
    ),
    (
        "core",
        "core.system",
        "children=child_processes compilation=compilation_progress interrupts processors table_layout=text_tables",
    ),
    ("core.spec", "core.spec.files", "yaml_reader json_schema"),
    ("core.train", "core.system", "files"),
    (
        "core.rules",
        "core.rules.kernel",
        "tables=rule_tables programs=move_programs movegen attacks play=play_move giving_check ends=game_ends perft",
    ),
    ("core.rules.kernel", "core.rules.kernel", "make_move=play_move"),
    (
        "core.rules",
        "core.rules.fairy",
        "fairy_moves=fairy_positions fairy_states=fairy_positions fairy_stockfish workers=fairy_workers",
    ),
    ("core.rules", "core.rules.text", "fen notation"),
    (
        "core.rules",
        "core.testing",
        "conformance=rules_conformance game_conformance",
    ),
    (
        "core.encoding",
        "core.testing",
        "conformance=encoding_conformance mirrored_views=encoding_conformance views=encoding_conformance",
    ),
    (
        "core.encoding",
        "core.encoding",
        "codec=move_codes kernels=encoding_kernels labels=move_labels planes=input_planes policy=policy_planes records=encoding_kernels encoding_tables=encoding_kernels",
    ),
    (
        "core.nets",
        "core.nets",
        "blocks=layers describe=description export=onnx_export scaling=network",
    ),
    (
        "core.inference",
        "core.inference",
        "known_answers=int8_check saturation=int8_check",
    ),
    ("core.inference", "core.system", "folders"),
    ("core.engine", "core.inference", "models=packaged_nets packaged_nets"),
    (
        "core.inference",
        "core.inference.backends",
        "baseline=netless_backends uniform_backend=netless_backends onnx=onnx_backend openvino=openvino_backend torch=torch_backend padding parallel=composite_backends check=composite_backends",
    ),
    (
        "core.inference",
        "core.inference.choosing",
        "choose=evaluator_factory auto=fastest_evaluator kept=saved_choices measure=evaluator_timing load=saved_choices",
    ),
    (
        "core.search",
        "core.search",
        "params=settings trees=search net_answers=net_view answer=pipeline",
    ),
    (
        "core.search",
        "core.search.tree",
        "nodes edges select=selection descend=descent backup repetition chases reuse table=transpositions priors root=edges batch=leaf_batch slow_tree shortest=look_ahead.shortest_mate seek=look_ahead.shortest_mate",
    ),
    ("core.search.tree", "core.search.tree.look_ahead", "shortest_mate"),
    (
        "core.search",
        "core.search.move",
        "choice=move_choice clock on_clock=timed_search limits lag=clock lines=variations",
    ),
    ("core.search", "core.jit", "prefetch=functions"),
    ("core.jit", "core.jit", "crew=parallel_compilation"),
    (
        "core.data",
        "core.data",
        "record=game_record stats=statistics pgn_writer=game_text text_output=game_text",
    ),
    (
        "core.data",
        "core.data.read",
        "reader=game_reader skips=game_reader pgn jsonl=line_formats tables=line_formats move_lists=line_formats text=decoding headers annotations=headers resolve sources=game_files importer",
    ),
    (
        "core.data",
        "core.data.fetch",
        "fetching=monthly_archive lichess=monthly_archive remote=remote_file",
    ),
    ("core.data.fetch", "core.data.fetch", "lichess=monthly_archive"),
    (
        "core.data",
        "core.data.store",
        "store_format blocks columns store_info store_writer resuming=store_writer moves=stored_moves visits duplicates=stored_moves",
    ),
    ("core.data", "core.data.sample", "sampler sampled_games replay=compiled_replay split mixture"),
    (
        "core.draw",
        "core.draw",
        "figures=piece_images shapes=piece_images ground=board background=board pieces=piece_images png=svg text=terminal",
    ),
    (
        "core.train",
        "core.train.loop",
        "trainer learner schedule=optimisers assembly=optimisers muon averages=learner workers=devices guard=learner window=learner device=devices source=position_source placement=position_source",
    ),
    (
        "core.train",
        "core.train.run",
        "config=training_settings plan session=training_run checkpoint record=run_folder observer=run_folder start=initial_weights stores=training_data environment=training_run publish=training_run",
    ),
    (
        "core.train",
        "core.train.measure",
        "metrics evaluation prediction calibration intervals=metrics baseline=evaluation agreement=reduced_precision reduce=reduced_precision places=evaluation mates=mate_set titles=metric_tables models=prediction",
    ),
    ("core.train.run", "core.train.run", "run_log=run_folder"),
    ("core.train", "core.train.report", "html=run_report gallery=run_report"),
    ("core.train", "core.nets", "activations=description"),
    (
        "core.arena",
        "core.arena.programs",
        "process=engine_process uci_client ucci_client=uci_client xboard_client external=program_player coordinates=program_player",
    ),
    ("core.arena", "core.arena.players", "player player_spec net_player time_control=player"),
    (
        "core.arena",
        "core.arena.match",
        "match_settings pairings=match_settings referee tournament match_record journal",
    ),
    (
        "core.arena",
        "core.arena.tables",
        "elo sprt crosstable crosstable_html=crosstable ratings=elo",
    ),
    (
        "core.arena",
        "core.arena.games",
        "generate=generation generated=generated_games self_play=generation openings polyglot=openings policy_lines=openings blunders=generated_games",
    ),
    ("core.arena", "core.arena.tuning", "surrogate tuning_picture"),
    (
        "core.engine",
        "core.engine",
        "player=engine workshop=engine_builder table=current_game lines=line_io replay=protocol_log service=json_service searcher=running_search control=search_signals inbox=search_signals command_queue=search_signals",
    ),
    (
        "core.engine",
        "core.engine.protocols",
        "uci ucci options=engine_options option_set=chosen_options",
    ),
    (
        "core.analysis",
        "core.analysis",
        "annotate=annotated_game accuracy=annotated_game speed=search_speed",
    ),
    ("plugins", "plugins", "manager=registered"),
)


def renamed_modules() -> dict[str, str]:
    """Old name -> new name of every module that has moved."""
    return {
        f"variant_ai.{old}.{name.partition('=')[0]}": f"variant_ai.{new}.{name.rpartition('=')[2]}"
        for old, new, names in _MOVED
        for name in names.split()
    }


def moved_names(package: str, names: dict[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose name was that of a module before.

    names: name -> module that defines it now.
    """

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib
        import warnings

        new = names[name]
        warnings.warn(f"{package}.{name} is now {new}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(new), name)

    return attribute


class RenamedModules:
    """Meta-path finder and loader of modules by their old names.

    It stands last in `sys.meta_path`, so it is asked only for names that nothing else finds. It imports
    what it needs when it is used: `import variant_ai` stays quick.
    """

    def __init__(self) -> None:
        self.new: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("variant_ai."):
            return None
        from importlib.machinery import ModuleSpec

        self.new = self.new or renamed_modules()
        return ModuleSpec(fullname, self) if fullname in self.new else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """None: Python makes an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        import importlib
        import sys
        import warnings

        old, new = module.__name__, self.new[module.__name__]
        warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = importlib.import_module(new)
