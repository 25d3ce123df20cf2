"""The page for finishing the job by hand: inspect, name, merge and split clusters, and export the labels."""
