"""Let a function decide what the agent may read and do.

python docs/examples/approve_in_python.py MODEL TASK
"""

import sys

from cockpit import Answer, ApprovalRequest, run_sync


def approve(request: ApprovalRequest) -> Answer:
    """Approve what is read within the project's files and low-risk actions; refuse the rest with words."""
    if request.kind == "context":
        files = tuple(item for item in request.items if item.startswith("file:"))
        return Answer("approve", items=files) if files else Answer("reject", "Ask for files only.")
    if request.risk == "high":
        return Answer("reject", "This program approves nothing of high risk.")
    print(f"approved: {request.title}")
    return Answer("approve")


model, task = sys.argv[1:]
result = run_sync(task, model=model, approve=approve, max_steps=8)
print(result, result.modified_files)
