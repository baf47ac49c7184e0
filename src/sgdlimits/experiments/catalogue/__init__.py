"""One file per experiment; a new file here is a new experiment, and nothing else is needed."""
