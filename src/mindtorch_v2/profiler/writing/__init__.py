"""What outputs are written with: units, tables, JSON, files that appear complete. Nothing here knows of recordings."""
