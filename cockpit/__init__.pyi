from cockpit.act.own_tools.decorator import MissingInput as MissingInput
from cockpit.act.own_tools.decorator import tool as tool
from cockpit.library.approvals import Answer as Answer
from cockpit.library.approvals import ApprovalRequest as ApprovalRequest
from cockpit.library.loop_result import LoopResult as LoopResult
from cockpit.library.omni_loop import LoopEvent as LoopEvent
from cockpit.library.omni_loop import OmniLoop as OmniLoop
from cockpit.library.omni_loop import OmniLoopConfig as OmniLoopConfig
from cockpit.library.omni_loop import run_sync as run_sync

__version__: str
