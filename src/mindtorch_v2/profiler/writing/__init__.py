"""The means to write outputs: units, tables, JSON, files that appear complete. Nothing here knows of recordings."""
