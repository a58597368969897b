"""Processes that are killed live where those of the stories do."""

from tests.stories.conftest import mock, place

__all__ = ["mock", "place"]
