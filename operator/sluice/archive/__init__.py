"""Archives of streams: stores of objects, formats, and runs that are recorded and verified."""
