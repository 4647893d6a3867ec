"""How operators are declared and called; no operator is declared here."""
