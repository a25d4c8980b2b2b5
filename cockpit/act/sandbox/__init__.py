"""The sandbox of programs that others wrote: what they see, may ask of the kernel, and may use up."""
