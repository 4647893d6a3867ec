"""What happened: the recorder inside every call, who watches scopes, backward, modules and memory, and the columns of it all.

`recorder` and `execution_layer` are hot: lines of theirs run in every operator while somebody records.
"""
