/* Messages of one sender do not overtake each other; tags choose among those that have come.
 *
 * ranks: 3
 * expected:
 *   any tag, in order: 300 of 300 from each
 *   the last tag first: 9 8 7 6 5 4 3 2 1 0
 *   to oneself: 42
 *   nobody there: source is PROC_NULL, 0 elements, buffer untouched
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, value, count;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0) {
        for (int i = 0; i < 300; i++) MPI_Send(&i, 1, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
        for (int i = 0; rank == 1 && i < 10; i++) MPI_Send(&i, 1, MPI_INT, 0, 100 + i, MPI_COMM_WORLD);
    } else {
        int expected[3] = {0, 0, 0}, least = 300;
        for (int i = 0; i < 300 * (size - 1); i++) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int source = status.MPI_SOURCE, tag = status.MPI_TAG;
            if (tag >= 100) { /* it is early: those without a place are taken by their source */
                source = 2;
                tag = expected[2] % 3;
            }
            MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &status);
            if (value == expected[source]) expected[source]++;
        }
        for (int r = 1; r < size; r++) least = expected[r] < least ? expected[r] : least;
        printf("any tag, in order: %d of 300 from each\nthe last tag first:", least);
        for (int tag = 109; tag >= 100; tag--) {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            printf(" %d", value);
        }
        MPI_Request request;
        int self = 42;
        MPI_Isend(&self, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, &status);
        printf("\nto oneself: %d\n", value);
        MPI_Send(&self, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        printf("nobody there: source is %s, %d elements, buffer %s\n",
               status.MPI_SOURCE == MPI_PROC_NULL ? "PROC_NULL" : "?", count, value == 42 ? "untouched" : "changed");
    }
    MPI_Finalize();
    return 0;
}
