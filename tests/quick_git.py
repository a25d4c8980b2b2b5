"""Git without what tests have no use for: its samples of hooks, and the upkeep after each commit."""

QUICK = {
    "GIT_TEMPLATE_DIR": "",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}
"""Variables for the git that makes a test's repository: of its time, they save two thirds and a third."""
