"""Commands about what agents know and can do: skills, knowledge, notes, tools, trust."""
