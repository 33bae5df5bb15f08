def ring(word):
    ### BEGIN SOLUTION
    send(dest=(rank + 1) % size, word=word)
    return recv(src=(rank - 1) % size).word
    ### END SOLUTION
