"""Archives of streams: object stores, formats, what is recorded, and whether it is still so."""
