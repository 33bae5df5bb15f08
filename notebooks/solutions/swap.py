def swap(word):
    partner = rank + 1 if rank % 2 == 0 else rank - 1
    ### BEGIN SOLUTION
    if partner == size:
        return word
    send(dest=partner, word=word)
    return recv(src=partner).word
    ### END SOLUTION
