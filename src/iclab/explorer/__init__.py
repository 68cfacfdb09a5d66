"""The explorer: one file that opens from disk, where sliders move the theory."""

__all__: list[str] = []
