def far_sum(number):
    ranks = range(size)
    mine = [r for r in ranks if sfm.site_of(r) == sfm.site]
    others = [r for r in ranks if sfm.site_of(r) != sfm.site]
    ### BEGIN SOLUTION
    if rank != mine[0]:                             # the first of my site does it for me
        send(dest=mine[0], number=number)
        return recv(src=mine[0], tag='sum').total
    total = number + sum(recv(src=r).number for r in mine[1:])
    if others:                                      # one message each way
        send(dest=others[0], tag='site', total=total)
        total += recv(src=others[0], tag='site').total
    for r in mine[1:]:
        send(dest=r, tag='sum', total=total)
    return total
    ### END SOLUTION
