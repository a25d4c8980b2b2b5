-- Which external agent has the session and where it works. Only the branch is also set for the built-in agent.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN transport TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN pid TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN cwd TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN branch TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN agent_session TEXT NOT NULL DEFAULT '';
-- The board asks for the sessions of agents that run; few rows have one.
CREATE INDEX idx_sessions_agent ON sessions(agent, agent_session) WHERE agent<>'';
