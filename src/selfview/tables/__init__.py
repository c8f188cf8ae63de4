"""Tables of mixed columns become rows of floats: what each column is, and how it is encoded."""
