"""The sections of a report: each a function of a process that gives the data of one view."""
