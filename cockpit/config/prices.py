"""Read ``[prices."MODEL"]``: what models cost that no price list knows.

See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from cockpit.config.setting import OutOfBounds
from cockpit.core.read_record import convert
from cockpit.decide.model_settings import ModelPrice

_Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class _Price(msgspec.Struct, forbid_unknown_fields=True):
    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None


def read_prices(body: Mapping[str, Any]) -> dict[str, ModelPrice]:
    """Read the prices of a table ``[prices]``, by the full name of the model.

    Raises :class:`OutOfBounds`, whose message names the model and what is allowed.
    """
    return {name: _read_price(name, table) for name, table in body.items()}


def _read_price(name: str, table: object) -> ModelPrice:
    try:
        price = convert(table, _Price)
    except msgspec.ValidationError as error:
        raise OutOfBounds(
            f'[prices."{name[:80]}"]: {error}. It needs input and output, and may have cached_input and'
            " cache_write: US dollars for a million tokens"
        ) from error
    return ModelPrice(price.input, price.output, price.cached_input, price.cache_write)
