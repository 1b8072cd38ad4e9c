"""What Keras has by name: which of it is here, aliases, and how what is missing says so."""
