"""The SQLite file: connections, the writer thread, transactions, migrations."""
