from sfm_kernel import Group

def steady(plan):
    group = Group(sfm)
    last = size - 1
    ### BEGIN SOLUTION
    if rank == 0:
        send(dest=last, tag='plan', plan=plan)
    if rank == last:
        plan = recv(src=0, tag='plan').plan
    group.barrier()
    return plan if rank == last else None
    ### END SOLUTION
