"""The training loop: `devices`, `optimisers`, `muon`, `position_source`, `loss`, `learner`, `trainer`."""
