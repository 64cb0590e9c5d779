"""Files of a wrapped agent: private ones, those of its project, and what one run leaves for the next."""
