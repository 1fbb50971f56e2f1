"""The training loop: `device`, `optimisers`, `muon`, `distributed`, `position_source`, `loss`,
`learner`, `averages`, `trainer`.
"""
