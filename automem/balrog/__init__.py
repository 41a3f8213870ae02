"""What ties our results to BALROG's (arXiv 2411.13543): its names, its arithmetic, its files."""
