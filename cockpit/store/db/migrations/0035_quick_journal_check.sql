-- The journal's results are compared one by one, as phases are: no temporary table for each statement. Only
-- the text of the check changes, so no row is written again. A SQLite that protects its schema refuses this;
-- migrate.py then leaves the old text, which check_schema.py takes for the same.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK(result IN (''ok'',''refused'',''error''))',
  'CHECK(result = ''ok'' OR result = ''refused'' OR result = ''error'')')
WHERE type = 'table' AND name = 'journal';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again once a table was made or dropped.
CREATE TABLE schema_changed (x);
DROP TABLE schema_changed;
