"""The training loop: `device`, `optimisers`, `muon`, `distributed`, `position_source`, `learner`,
`averages`, `trainer`.
"""
