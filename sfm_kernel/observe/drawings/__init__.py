"""Drawings of a world for a notebook's cell, as HTML and SVG without scripts.

graph    who waits for whom
inboxes  the messages that lie in each inbox
matrix   who has sent how much to whom
animation  the messages of a run as moving dots
style    the colours of senders

They are shown where the panel is not: in VS Code, on a page of nbconvert, on paper.
"""
