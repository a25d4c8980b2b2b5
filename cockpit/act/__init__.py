"""Act: tools, guards, previews, risk, sandbox, adapters, receipts."""
