"""Output for people and other programs: tables, traces, files, pages."""
