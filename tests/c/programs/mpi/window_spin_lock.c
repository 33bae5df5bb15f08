/* A lock of the program's own, made of MPI_Compare_and_swap, and what it protects.
 *
 * ranks: 4
 * expected:
 *   200 times somebody was alone
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, memory[2] = {-1, 0}, nobody = -1, found, total;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 50; i++) {
        do {
            MPI_Compare_and_swap(&rank, &nobody, &found, MPI_INT, 0, 0, win);
            MPI_Win_flush(0, win);
        } while (found != nobody);
        MPI_Get(&total, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        total++;
        MPI_Put(&total, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&nobody, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        printf("%d times somebody was alone\n", memory[1]);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
