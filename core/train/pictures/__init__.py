"""Pictures of data sets, positions, nets and runs, as PNG. No torch here.

| module | what |
| --- | --- |
| `canvas` | figures, colours, text that every font can show |
| `board` | a board of `core.draw` within a figure, squares shaded and moves drawn |
| `planes` | the planes of a position (paper 000, figure 3) |
| `maps` | activation maps and the policy on the board (figure 4) |
| `curves` | learning curves and schedules (figures 2, 9, 10, 11) |
| `datasets` | players, results, ratings, first moves (figures 6-8; thesis 4.1, 4.2, 5.3) |
| `quality` | calibration, accuracy by ply and by rating |

Colours are those of Okabe and Ito, which people with any of the usual kinds of colour vision tell
apart; where colours carry a meaning, line styles, markers or labels carry it too.
"""

from variant_ai.core.train.pictures.canvas import Picture, write_pictures
from variant_ai.core.train.pictures.training_curves import draw_curves

__all__ = ["Picture", "draw_curves", "write_pictures"]
