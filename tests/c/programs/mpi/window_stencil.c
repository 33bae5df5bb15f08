/* Heat in a rod: each rank puts its borders into its neighbours' windows, between fences.
 *
 * ranks: 4
 * expected:
 *   after 200 steps the middle has 50.00
 *   heat in all: 5749.38
 */
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 25, STEPS = 200 };

int main(int argc, char **argv)
{
    int rank, size;
    double *now, next[CELLS + 2];
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate((CELLS + 2) * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &now, &win);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < CELLS + 2; i++)
        now[i] = 0;
    if (left == MPI_PROC_NULL)
        now[0] = 100;
    if (right == MPI_PROC_NULL)
        now[CELLS + 1] = 100;
    for (int i = 1; i <= CELLS; i++)
        now[i] = 50;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int step = 0; step < STEPS; step++) {
        MPI_Put(&now[1], 1, MPI_DOUBLE, left, CELLS + 1, 1, MPI_DOUBLE, win);
        MPI_Put(&now[CELLS], 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
        for (int i = 1; i <= CELLS; i++)
            next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        for (int i = 1; i <= CELLS; i++)
            now[i] = next[i];
        MPI_Win_fence(MPI_MODE_NOPUT, win);
    }
    double middle = rank == size / 2 ? now[1] : 0, own = 0, sums[2], parts[2];
    for (int i = 1; i <= CELLS; i++)
        own += now[i];
    parts[0] = middle;
    parts[1] = own;
    MPI_Reduce(parts, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("after %d steps the middle has %.2f\n", STEPS, sums[0]);
        printf("heat in all: %.2f\n", sums[1]);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
