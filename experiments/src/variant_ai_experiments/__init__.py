"""Experiments of the papers, as a plugin that adds commands to `variant-ai`.

This package uses `variant_ai`; nothing in `variant_ai` imports it. In reading order:

    plugin            the commands and their modules
    experiment_file   experiments as YAML files
    experiment        `experiment run`: options, stores and plan
    arm_runs          the runs of the arms in child processes
    comparison        table, pictures and report
    move_curve        `experiment n-e6`
    lr_find           `lr-find`
    show              `show`
    puzzle_suites     files of puzzles, solved by a player
    solve             `solve`
"""
