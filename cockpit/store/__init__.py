"""The SQLite file, its migrations, the journal, one module per aggregate."""
