"""Pictures of every variant, and reports that open without a network."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from random_games import random_store

from variant_ai.core.data.store.game_store import Store
from variant_ai.core.draw.piece_images import DISC
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.nets import configure_for
from variant_ai.core.nets.description import activations
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.train.measure import metric_tables as titles
from variant_ai.core.train.measure.prediction import TorchPredictor
from variant_ai.core.train.pictures import canvas, data_set_pictures
from variant_ai.core.train.pictures.data_set_pictures import (
    DataSet,
    dataset_pictures,
    lengths_picture,
)
from variant_ai.core.train.pictures.position_pictures import features_picture, planes_picture
from variant_ai.core.train.pictures.quality_pictures import quality_pictures
from variant_ai.core.train.pictures.training_curves import (
    compared_curves,
    last_steps,
    learning_curves,
)
from variant_ai.core.train.report.report_page import Chapter, Table, page
from variant_ai.core.train.report.run_report import activation_pictures, policy_of

OUTSIDE = re.compile(r"""(?:src|href)\s*=\s*["'](?!data:|#)|url\(|@import|<script|<link""")
"""References to other files, which a page must not have."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "DPI", 30)


def test_many_series_can_be_told_apart() -> None:
    assert len({tuple(canvas.series(number).values()) for number in range(49)}) == 49


def pixels(shown: canvas.Picture) -> np.ndarray:
    image = np.asarray(Image.open(io.BytesIO(shown.png)).convert("RGB"))
    assert image.std() > 5, "an empty picture"
    return image


@pytest.mark.parametrize("name", sorted(builtin_specs()))
def test_every_variant_has_pictures(name: str) -> None:
    spec = load_spec(builtin_specs()[name])
    rules, encoder = make_rules(spec), Encoder(spec)
    position = rules.play(rules.position(), int(rules.legal_moves(rules.position())[0]))
    shown = planes_picture(encoder, rules, position)
    assert f"{encoder.shape[0]} planes" in shown.caption
    assert rules.fen(position) in shown.caption
    pixels(shown)
    if name not in ("crazyhouse", "dobutsu", "xiangqi"):  # drops; a turned board; neither
        return
    uniform = UniformEvaluator(encoder.shape, encoder.actions)
    pixels(policy_of(uniform.evaluate, encoder, rules, position))


@pytest.mark.parametrize("name", ["chess", "shogi"])  # sides mirrored, sides turned
def test_heat_lies_where_the_net_sees_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell (0, 0) of the maps is the lower left corner, whoever is to move."""
    monkeypatch.setattr(canvas, "DPI", 100)
    spec = load_spec(builtin_specs()[name])
    rules = make_rules(spec)
    start = rules.position()
    heat = np.zeros((spec.board.ranks, spec.board.files))
    heat[0, 0] = 1
    for position in (start, rules.play(start, int(rules.legal_moves(start)[0]))):
        figure = canvas.new_figure(4, 4, arranged=False)
        axis = figure.add_axes((0, 0, 1, 1))
        canvas.draw_board(axis, rules, position, heat=heat)
        image = pixels(canvas.picture(figure, "n", "t", "c")).astype(int)
        rows, columns = np.nonzero((image[..., 0] > 150) & (image[..., 2] < 40))
        assert rows.size, "no square is dark orange"
        assert rows.min() > image.shape[0] / 2
        assert columns.max() < image.shape[1] / 4


def test_boards_of_figures_have_the_variants_own_pieces(
    xiangqi: VariantSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discs and inks of the spec's `drawing`, as in the pictures of `analyse`."""
    monkeypatch.setattr(canvas, "DPI", 100)
    rules = make_rules(xiangqi)
    game = Game.from_uci(rules, None, ["h3e3"])
    figure = canvas.new_figure(6, 6)
    canvas.draw_board(figure.subplots(), rules, game.position)
    image = pixels(canvas.picture(figure, "n", "t", "c")).astype(int)
    assert xiangqi.drawing.inks is not None
    for colour in (DISC, xiangqi.drawing.inks[0]):
        wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert (np.abs(image - wanted).max(axis=2) < 12).sum() > 100, colour
    assert canvas.mover(rules, game.position) == "Black to move"


def test_data_sets_beside_each_other(tmp_path: Path) -> None:
    spec = load_spec(builtin_specs()["xiangqi"])
    sets = {
        label: DataSet.of(Store(random_store(tmp_path / label, spec, 6, 12, seed), spec))
        for seed, label in enumerate(("one", "$other 名"))
    }
    found = {shown.name: shown for shown in dataset_pictures(sets, make_rules(spec))}
    # Random games have no players, ratings, time controls or endings: no empty pictures of those.
    assert set(found) == {"results", "lengths", "years", "first-moves"}
    for shown in found.values():
        pixels(shown)


def test_the_mean_of_a_histogram_is_that_of_all_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Games longer than the axis are drawn in its last bar."""
    spec = load_spec(builtin_specs()["xiangqi"])
    shown = DataSet.of(Store(random_store(tmp_path / "a.store", spec, 2, 4, 0), spec))
    lengths = np.array([50] * 999 + [5050])
    drawn: list[Any] = []
    monkeypatch.setattr(data_set_pictures, "picture", lambda figure, *texts: drawn.append(figure))
    lengths_picture({"games": dataclasses.replace(shown, lengths=lengths)})
    (text,) = drawn[0].axes[0].texts
    assert text.get_text() == "games\nmean 55.0"


def test_inside_of_a_net(xiangqi: VariantSpec) -> None:
    encoder, rules = Encoder(xiangqi), make_rules(xiangqi)
    _, height, width = encoder.shape
    torch.manual_seed(0)
    net = configure_for("risev2-mobile", encoder, blocks=1, channels=8, value_hidden=8).build()
    seen = encoder.planes(rules.position())
    found = activations(net, seen)
    assert found.stem.shape == found.tower.shape == (8, height, width)
    with torch.inference_mode():
        value, _ = net.eval()(torch.from_numpy(seen))
        stem = net.stem(torch.from_numpy(seen))[0].numpy()
    assert found.value == pytest.approx(float(value[0]))
    assert np.allclose(found.stem, stem)
    shown = activation_pictures(net, encoder, rules, rules.position())
    assert [p.name for p in shown] == ["maps-first", "maps-last", "heads"]
    for one in shown:
        pixels(one)
    with torch.no_grad():
        next(net.parameters()).fill_(float("nan"))
    with pytest.raises(VariantAIError, match="is not a number"):
        policy_of(TorchPredictor(net, torch.device("cpu")), encoder, rules, rules.position())
    with pytest.raises(VariantAIError, match="no part 'stem'"):
        activations(torch.nn.Identity(), seen)


def test_maps_stand_as_the_mover_sees_them() -> None:
    """The greatest value, on the mover's first rank, is below, and channel 1 right of channel 0."""
    maps = np.zeros((2, 4, 4), np.float32)
    maps[0, 0, 0] = maps[1, 3, 3] = 1
    bright = pixels(features_picture(maps, "maps", "Maps")).astype(int)[:, :, :2].sum(2) > 400
    image = bright & (pixels(features_picture(maps, "maps", "Maps"))[:, :, 2] < 120)
    rows, columns = np.nonzero(image)
    middle = image.shape[1] / 2
    assert rows[columns < middle].mean() > rows[columns > middle].mean()


def test_text_that_can_be_shown() -> None:
    assert canvas.printable("$5") == r"\$5"
    assert canvas.printable("abcdef", 4) == "abc…"
    assert canvas.printable("\U000e0001x") == "?x"


def test_curves_of_one_run_and_of_several() -> None:
    events = [
        {"kind": "train", "step": 10 * k, "policy_loss": 3 - k / 10, "lr": 0.1, "momentum": 0.9}
        for k in range(1, 9)
    ]
    pixels(learning_curves(events, "a run"))
    pixels(learning_curves([], "a run that has not begun"))
    pixels(compared_curves({"a": events, "b": events}))
    pixels(last_steps({"a": events}))
    assert last_steps({"nothing": []}) is None


def test_quality_has_no_empty_pictures() -> None:
    assert quality_pictures({"net": {"policy_accuracy": 0.5}}) == []
    metrics = {"positions": 99, "policy_accuracy": 0.5, "policy_loss": 1.0, "value_loss": 1.0}
    found = quality_pictures({"net": {"by_rating": {"no rating": metrics}}})
    assert found == []
    found = quality_pictures({"net": {"by_rating": {"1400-1499": metrics, "no rating": metrics}}})
    assert [p.name for p in found] == ["by-rating"]


def test_a_page_needs_nothing_but_itself() -> None:
    shown = canvas.Picture("p", "A <title>", 'says "so"', b"\x89PNG")
    table = Table("t", ("a", "b"), [("<x>", "1")])
    text = page(
        "Title & more", "<b>", [Chapter("One", "text", [table], [shown], folded=[("f", "{}")])]
    )
    assert "<summary>f</summary><pre>{}</pre>" in text
    assert "<b>" not in text and "&lt;x&gt;" in text and "A &lt;title&gt;" in text
    assert 'alt="says &#34;so&#34;"' in text
    assert f'src="data:image/png;base64,{b64encode(shown.png).decode()}"' in text
    assert not OUTSIDE.search(text)


def test_json_of_an_evaluation_is_json() -> None:
    from variant_ai.core.train.measure.evaluation import DETAILS, summarise
    from variant_ai.core.train.measure.metrics import Scores

    n = 40
    made = Scores(
        np.full(n, -1, "f4"), np.arange(n) % 7, np.linspace(-1, 1, n, dtype="f4"),
        np.zeros(n, "f4"), np.ones(n, "f4"), np.ones(n, "f4"),
    )  # fmt: skip
    found = summarise(made, np.arange(n, dtype=np.int32), 0.01).as_dict()
    said = json.loads(json.dumps(found, allow_nan=False))
    assert set(DETAILS) <= set(said)
    assert said["intervals"]["value_accuracy_sign"]["mean"] is None
    assert said["top"]["1"] == pytest.approx(6 / 40)
    assert [point["first"] for point in said["over_plies"]] == [0, 10, 20, 30]
    pixels(quality_pictures({"net": said})[0])


def test_a_metric_has_one_title_everywhere() -> None:
    """Tables, reports, pictures and commands take titles from `titles` and write none themselves."""
    root = Path(titles.__file__).parents[3]
    known = {*titles.TITLES.values(), *titles.WDL.values(), titles.CALIBRATION, titles.BASELINE}
    files = [*(root / "core").rglob("*.py"), *(root / "cli").rglob("*.py")]
    assert len(files) > 100
    for file in files:
        if file.name == "metric_tables.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in known, f"{file.name}:{node.lineno}"
                assert node.value.strip() != "value sign", f"{file.name}:{node.lineno}"
    assert titles.top_title(5) == titles.TITLES["top5_accuracy"]
    assert set(titles.SHARES) < set(titles.TITLES)
