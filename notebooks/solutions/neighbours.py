def neighbours(number):
    ### BEGIN SOLUTION
    right, left = (rank + 1) % size, (rank - 1) % size
    send(dest=right, number=number)
    return recv(src=left).number
    ### END SOLUTION
