"""The page on which people finish the job: look at clusters, name, merge and split them, and export the labels."""
