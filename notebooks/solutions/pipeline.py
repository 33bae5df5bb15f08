import numpy as np

def pipeline(data, chunk):
    ### BEGIN SOLUTION
    parts, start, last = [], 0, False
    while not last:
        if rank == 0:
            part = data[start:start + chunk]
            start += chunk
            last = start >= len(data)
        else:
            m = recv(src=rank - 1)
            part, last = m.part, m.last
        if rank < size - 1:
            send(dest=rank + 1, part=part, last=last)
        parts.append(part)
    return np.concatenate(parts)
    ### END SOLUTION
