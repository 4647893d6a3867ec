"""What people and other programs see: tables, traces, files, pages."""
