def f(x):
    return 4 / (1 + x * x)

def simpson(n):
    ### BEGIN SOLUTION
    if rank == 0:                                   # broadcast n
        for other in range(1, size):
            send(dest=other, n=n)
    else:
        n = recv(src=0).n

    h = 1 / n                                       # my intervals
    part = 0.0
    for i in range(rank, n, size):
        a, b = i * h, (i + 1) * h
        part += h / 6 * (f(a) + 4 * f((a + b) / 2) + f(b))

    if rank != 0:                                   # reduction to rank 0
        send(dest=0, part=part)
        return None
    return part + sum(recv(src=other).part for other in range(1, size))
    ### END SOLUTION
