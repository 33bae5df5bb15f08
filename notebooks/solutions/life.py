import numpy as np
from mpi4py import MPI

def one_step(board):                                # its first and last row are neighbours' rows
    around = sum(np.roll(board, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) - board
    return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)[1:-1]

def life(rows, steps):
    comm = MPI.COMM_WORLD
    up, down = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    board = np.zeros((len(rows) + 2, rows.shape[1]), rows.dtype)
    for _ in range(steps):
        board[1:-1] = rows
        ### BEGIN SOLUTION
        comm.Sendrecv(board[1], dest=up, recvbuf=board[-1], source=down)
        comm.Sendrecv(board[-2], dest=down, recvbuf=board[0], source=up)
        rows = one_step(board)
        ### END SOLUTION
    return rows
