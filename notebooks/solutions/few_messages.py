def few_messages(numbers):
    ### BEGIN SOLUTION
    total = sum(numbers)
    if rank != 0:
        send(dest=0, total=total)
        return None
    return total + sum(recv().total for _ in range(1, size))
    ### END SOLUTION
