"""Page: the sections of the results page, from the lines of the benchmarks."""
