"""Review the last commit of the repository in the working directory, by rules alone: no key, no network.

The review is written to ``.cockpit/reviews/``, which the policy ``all`` approves.

    python docs/examples/review_a_range.py
"""

from cockpit import run_sync

result = run_sync("/review-pr HEAD~1..HEAD", model="offline", policy="all", max_steps=8)
print(result)
print(f"{result.status} after {result.waves} waves")
