"""The classroom: one page with the worlds that students share on purpose.

A student's notebook observes its own world and sends reports of it. The classroom cannot read a
world: it gets no key, and can control nothing. A notebook with the class's join token may send
reports; a browser with the teacher's key, or with access to the teacher's Jupyter server, shows
them.

    python -m sfm_kernel.classroom           the page, on this machine
    <a Jupyter server>/sfm/classroom         the same, behind that server's own authentication

    sharing        the student's side: observes a world and sends reports
    report         a report: makes it, and checks one that has arrived
    progress       who has solved what: a student's notes, and the teacher's table of them
    shared_worlds  the latest report of each student, within bounds
    web            the requests
    page.*         the page; page.js and page.css are built from labextension/src/classroom, which
                   has the panel's widgets
"""
