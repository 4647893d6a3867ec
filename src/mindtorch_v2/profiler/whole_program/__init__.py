"""Recording a whole program from outside: from its first line to the end of its process, and in the processes that it starts."""
