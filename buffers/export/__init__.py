"""Episodes for other programs: flat Parquet tables, a Minari dataset, or ATIF trajectories."""

from buffers.export.exporting import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
