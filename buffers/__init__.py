"""The replay buffer: episodes in a Delta table, read back as episodes, frames, arrays or a d3rlpy dataset."""

from buffers.replay import BufferStats, ReplayBuffer
from buffers.side import Attempt, HarnessFolder
from buffers.tensors import TrainingArrays
from buffers.where import Where
from buffers.writer import EpisodeWriter

__all__ = [
    "Attempt",
    "BufferStats",
    "EpisodeWriter",
    "HarnessFolder",
    "ReplayBuffer",
    "TrainingArrays",
    "Where",
]
