"""Loading the model SDKs, late and in a thread, and opening one for a call.

They take seconds to import. Nothing loads them before a provider is called, or before :func:`warm` announces
that one soon will be.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING

from cockpit.decide.model_endpoint import Endpoint, Vendor
from cockpit.decide.provider_errors import bound_response, refuse_document
from cockpit.decide.provider_extras import EXTRA_OF_VENDOR, is_installed

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncClient
    from pydantic_ai.models import Model as RequestModel

_CONNECT_S = 10.0
_BYTES_OF_A_CHARACTER = 512
"""A provider may send each token as an event of some hundred bytes."""


@asynccontextmanager
async def opened(endpoint: Endpoint, most: int) -> AsyncIterator[RequestModel]:
    """The provider's model over its own connections, which close with the block.

    It reads an answer of ``most`` characters with whatever is around them, and no stream without an end.
    Importing and the reading of certificates happen in a thread, so that the screen stays alive.
    """
    client, model = await asyncio.to_thread(_open, endpoint, most * _BYTES_OF_A_CHARACTER)
    try:
        yield model
    finally:
        await client.aclose()


def warm(name: str) -> threading.Thread | None:
    """Load what the model ``name`` needs, in the background; None when it needs nothing, or that is missing.

    Call it after the first frame. A call that comes earlier than the load ends simply waits for it.
    """
    vendor = name.partition(":")[0]
    if vendor == "anthropic" or vendor == "openai" or vendor == "openai-compatible":
        if not is_installed(EXTRA_OF_VENDOR[vendor]):
            return None  # the first message will report the problem
        thread = threading.Thread(target=_load, args=(vendor,), name="model-warm", daemon=True)
        thread.start()
        return thread
    return None


def _load(vendor: Vendor) -> None:
    import httpx2  # noqa: F401
    import pydantic_ai.direct
    from pydantic_ai._warnings import UsageExtractionFailedWarning

    # It would be printed over the screen; the counts are checked where an answer ends.
    warnings.simplefilter("ignore", UsageExtractionFailedWarning)

    if vendor == "anthropic":
        import pydantic_ai.models.anthropic
    else:
        import pydantic_ai.models.openai
        import pydantic_ai.providers.openai_compatible  # noqa: F401


def _open(endpoint: Endpoint, most_bytes: int) -> tuple[AsyncClient, RequestModel]:
    _load(endpoint.vendor)
    import httpx2
    from pydantic_ai.models import get_user_agent

    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(endpoint.timeout_s, connect=min(_CONNECT_S, endpoint.timeout_s)),
        headers={"User-Agent": get_user_agent()},
        event_hooks={"response": [partial(bound_response, most=most_bytes), refuse_document]},
        verify=_certificates(),
    )
    return client, _model(endpoint, client)


@cache
def _certificates() -> SSLContext:
    """Whom connections trust, read once: it takes 40 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def _model(endpoint: Endpoint, client: AsyncClient) -> RequestModel:
    if endpoint.vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            endpoint.model,
            provider=AnthropicProvider(
                api_key=endpoint.key, base_url=endpoint.base_url, http_client=client
            ),
        )
    if endpoint.vendor == "openai":
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIResponsesModel(
            endpoint.model,
            provider=OpenAIProvider(
                api_key=endpoint.key, base_url=endpoint.base_url, http_client=client
            ),
        )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAIChatModel(
        endpoint.model,
        provider=OpenAICompatibleProvider(
            "openai-compatible",
            base_url=endpoint.base_url,
            api_key=endpoint.key or None,
            http_client=client,
            # Every compatible service knows max_tokens; its newer name is OpenAI's own.
            profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False),
        ),
    )
