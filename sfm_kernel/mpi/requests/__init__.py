"""Requests: handles of what is under way.

status     Status: what a receive has got
state      what stands behind a request
request    Request: waiting and testing, for one and for many
prequest   Prequest: operations that are started again and again; in parts, too
grequest   Grequest: operations of the program itself
message    Message: a message that a matching probe has taken
"""
