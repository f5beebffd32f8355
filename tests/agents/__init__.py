"""Components for graphs and agents."""
