"""Rows that a second view is drawn from: nearest ones, partners in other groups, given links."""
