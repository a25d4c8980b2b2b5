"""How text is cleaned, coloured and formatted before it is drawn."""
