import numpy as np
from sfm_kernel.speedes import start_up

def pass_on(hops):
    comm = start_up(sfm)
    received = 0
    ### BEGIN SOLUTION
    after = (rank + 1) % size
    if hops > 0:
        comm.coordinated_send(after, np.array([hops]))
    while (m := comm.coordinated_receive()) is not None:
        received += 1
        left = int(m.data[0])
        if left > 1:
            comm.coordinated_send(after, np.array([left - 1]))
    ### END SOLUTION
    return received
