def tree_sum(number):
    ### BEGIN SOLUTION
    total, apart = number, 1
    while apart < size:
        if rank % (2 * apart) != 0:                 # give, and be done
            send(dest=rank - apart, total=total)
            return None
        if rank + apart < size:                     # take
            total += recv(src=rank + apart).total
        apart *= 2
    return total
    ### END SOLUTION
