"""Networks: encoders, decoders and heads, and what makes their passes cheap on a processor."""
