"""Gateways forward the messages between two sites over few connections.

``python -m sfm_kernel.gateway --world NAME --site A`` is a gateway of site A until it is killed. A
site may have several, which share the flows and replace each other. A native thread forwards the
frames (``native/src/gateway``); this package gives it what the directory server knows, and sends
the server its reports.

    options    the command line, and units
    service    a gateway with its connection to the directory server
"""
