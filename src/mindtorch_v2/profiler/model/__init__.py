"""A recording as data alone: sessions of columns, trees, events, averages, memory and modules. Nothing here records or prints."""
