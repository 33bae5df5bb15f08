"""Gateways: what processes of one site send to another one goes over few connections.

``python -m sfm_kernel.gateway --world NAME --site A`` is one of site A, until it is killed. A site
may have several, which share the flows and stand in for each other. The work is done by a native
thread (``native/src/gateway``); this package gives it what the directory server knows, and tells
that what the gateway does.

    options    the command line, and units
    service    a gateway with its line to the directory server
"""
