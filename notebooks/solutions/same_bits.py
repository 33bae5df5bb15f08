def same_bits(part):
    ### BEGIN SOLUTION
    if rank != 0:
        send(dest=0, part=part)
        return recv(src=0).total
    total = part
    for other in range(1, size):
        total += recv(src=other).part
    for other in range(1, size):
        send(dest=other, total=total)
    return total
    ### END SOLUTION
