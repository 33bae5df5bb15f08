def hand_out(tasks):
    ### BEGIN SOLUTION
    if rank == 0:
        for number, task in enumerate(tasks):
            send(dest=1 + number % (size - 1), task=task)
        for worker in range(1, size):
            send(dest=worker, task=None)
        return None
    done = []
    while (task := recv(src=0).task) is not None:
        done.append(task)
    return done
    ### END SOLUTION
