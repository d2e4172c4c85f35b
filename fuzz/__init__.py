"""Random calls, command lines, documents, tables and ledgers, each seeded by the number of its case. See run.py."""
