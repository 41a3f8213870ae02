"""Boxoban's levels: box-pushing rooms of ten by ten cells, official or generated."""

from games.boxoban.fetch import fetch
from games.boxoban.generate import generate
from games.boxoban.levels import BoxobanError, Level, cache_folder, parse
from games.boxoban.source import Source, find_source

__all__ = ["BoxobanError", "Level", "Source", "cache_folder", "fetch", "find_source", "generate", "parse"]
