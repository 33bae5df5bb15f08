def shuffle(words):
    ### BEGIN SOLUTION
    shares = [[word for word in words if len(word) % size == r] for r in range(size)]
    for other in range(size):
        if other != rank:
            send(dest=other, words=shares[other])
    counts = {}
    for r in range(size):
        for word in shares[rank] if r == rank else recv(src=r).words:
            counts[word] = counts.get(word, 0) + 1
    return counts
    ### END SOLUTION
