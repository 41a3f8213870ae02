"""The benchmark: agents on a suite, with results that hold."""
