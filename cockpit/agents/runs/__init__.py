"""One run of an external agent's command: its command line, folder, process and limits."""
