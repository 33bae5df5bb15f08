def capitals_first(words, capitals):
    right, left = (rank + 1) % size, (rank - 1) % size
    for word in words:
        send(dest=right, word=word)
    ### BEGIN SOLUTION
    large = [recv(src=left, word=str.istitle).word for _ in range(capitals)]
    small = [recv(src=left).word for _ in range(len(words) - capitals)]
    return large + small
    ### END SOLUTION
