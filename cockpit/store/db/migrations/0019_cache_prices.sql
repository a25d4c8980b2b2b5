-- What prompts cost with a provider's cache, and when an epoch of packets ends: what differs from the defaults.
ALTER TABLE orientation_profiles ADD COLUMN cache_json TEXT NOT NULL DEFAULT '{}';
