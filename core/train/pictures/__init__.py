"""Pictures of data sets, positions, nets and runs, as PNG. Does not import torch.

| module | contents |
| --- | --- |
| `canvas` | figures, colours, printable text, boards of `core.draw` in a figure |
| `position_pictures` | planes ([CrazyAra-preprint] figure 3), activation maps and policy (figure 4) |
| `training_curves` | learning curves and schedules (figures 2, 9, 10, 11) |
| `data_set_pictures` | players, results, ratings, first moves (figures 6-8; [Xiangqi-thesis] 4.1, 4.2, 5.3) |
| `quality_pictures` | calibration, accuracy by ply and by rating |

Colours are those of Okabe and Ito, which people with the usual kinds of colour blindness can tell
apart. Where colours have a meaning, line styles, markers or labels have it too.
"""

from variant_ai.core.train.pictures.canvas import Picture, write_pictures

__all__ = ["Picture", "write_pictures"]
