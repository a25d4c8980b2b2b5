"""The face for outside agents: the Model Context Protocol over the same services as every other."""
