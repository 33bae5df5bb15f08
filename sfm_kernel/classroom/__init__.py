"""The classroom: one page with the worlds that students share on purpose.

A student's notebook looks at its own world and sends what it sees; the classroom never reads a
world, and has no way to: it gets no key, and can control nothing. Who has the class's join token
may send pictures; who has the teacher's key, or may use the teacher's Jupyter server, sees them.

    python -m sfm_kernel.classroom           the page, on this machine
    <a Jupyter server>/sfm/classroom         the same, behind that server's own authentication

    sharing   the student's side: looks, and sends
    picture   what is sent, and what of that is believed
    board     what is known of each student, within bounds
    web       the requests
    page.*    the page
"""
