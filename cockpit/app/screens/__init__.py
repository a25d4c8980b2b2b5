"""Full screens: the cockpit, the board, a task, the queue, measures, a replay."""
