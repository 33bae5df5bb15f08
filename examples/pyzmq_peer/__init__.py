"""A member of an SFM world that needs nothing but pyzmq.

It joins, sends and receives None, booleans, integers, floats, texts, bytes and arrays of numbers,
notices deaths, and leaves. It is written from docs/wire-format.md alone, and can be the model of a
peer in another language. It talks to the members of its own site, and reads no pickled values.

    $ python -m sfm_kernel.directory my-world       # prints what the last line needs
    $ cd examples
    $ python -m pyzmq_peer my-world tcp://10.0.0.7:41234/8f0c… KEY --site SITE

packet       messages as bytes
directory    who is in the world
link         frames to one member and from it, once and in order
peer         connections; send and recv
"""
