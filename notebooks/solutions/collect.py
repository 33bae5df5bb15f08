def collect(word):
    ### BEGIN SOLUTION
    if rank != 0:
        send(dest=0, word=word)
        return None
    return [word] + [recv(src=other).word for other in range(1, size)]
    ### END SOLUTION
