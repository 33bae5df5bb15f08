/* A window is made, and the first process goes on before the others do, nearly always: it has time for the
 * first values of its memory, as programs expect that forget the barrier.
 *
 * ranks: 4
 * expected:
 *   the first process has gone on first four times in five: yes
 */
#include <mpi.h>
#include <stdio.h>

#define WINDOWS 100

int main(int argc, char **argv) {
    int rank, first = 0;
    double at, others, *memory;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int nth = 0; nth < WINDOWS; nth++) {
        MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        at = MPI_Wtime();
        if (rank == 0) {
            double never = at + 1e9;
            MPI_Reduce(&never, &others, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
            first += at < others;
        } else {
            MPI_Reduce(&at, NULL, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        }
        MPI_Win_free(&window);
    }
    if (rank == 0)
        printf("the first process has gone on first four times in five: %s\n", 5 * first >= 4 * WINDOWS ? "yes" : "no");
    MPI_Finalize();
    return 0;
}
