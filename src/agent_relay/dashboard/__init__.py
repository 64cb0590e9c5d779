"""Pages for people who watch: the files of the dashboard, and the way they are found."""
