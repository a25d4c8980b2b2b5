"""The five phases of a wave and the parts they are made of."""
