/* 2 ranks. Each has its own part of a window locked, and wants the other's.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Win_lock(rank=1, win=board) and waits for 1 in window_locks.c, line 19 (main).
 * says: 1 is in MPI_Win_lock(rank=0, win=board) and waits for 0 in window_locks.c, line 19 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, *memory;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "board");
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, win);
    MPI_Win_unlock(1 - rank, win);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
