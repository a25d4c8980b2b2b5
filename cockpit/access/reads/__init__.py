"""The judge of reads: which commands are known to read the project and to do nothing else."""
