/* Rows and columns of a grid as communicators; a split by key turns the order round.
 *
 * ranks: 4
 * expected:
 *   rank 0: row sum 1, column sum 2, place 3 when turned round, not left out
 *   rank 1: row sum 1, column sum 4, place 2 when turned round, not left out
 *   rank 2: row sum 5, column sum 2, place 1 when turned round, not left out
 *   rank 3: row sum 5, column sum 4, place 0 when turned round, left out
 *   messages of equal tags stay in their communicator: yes
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, mine[5], all[4][5], apart = 1;
    MPI_Comm row, column, turned, some, copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 5 : MPI_UNDEFINED, 0, &some);
    mine[0] = rank;
    MPI_Allreduce(&rank, &mine[1], 1, MPI_INT, MPI_SUM, row);
    MPI_Allreduce(&rank, &mine[2], 1, MPI_INT, MPI_SUM, column);
    MPI_Comm_rank(turned, &mine[3]);
    mine[4] = some == MPI_COMM_NULL;
    MPI_Gather(mine, 5, MPI_INT, all, 5, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size; r++)
        printf("rank %d: row sum %d, column sum %d, place %d when turned round, %sleft out\n", all[r][0], all[r][1],
               all[r][2], all[r][3], all[r][4] ? "" : "not ");
    /* The same source and tag: only the communicator tells them apart. */
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 0) {
        int in_world = 1, in_copy = 2;
        MPI_Send(&in_world, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        MPI_Send(&in_copy, 1, MPI_INT, size - 1, 0, copy);
        MPI_Recv(&apart, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("messages of equal tags stay in their communicator: %s\n", apart ? "yes" : "no");
    } else if (rank == size - 1) {
        int got[2], comparison;
        MPI_Recv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
        MPI_Recv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Comm_compare(MPI_COMM_WORLD, copy, &comparison);
        apart = got[0] == 1 && got[1] == 2 && comparison == MPI_CONGRUENT;
        MPI_Comm_compare(MPI_COMM_WORLD, turned, &comparison);
        apart &= comparison == MPI_SIMILAR;
        MPI_Send(&apart, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
    MPI_Comm_free(&row), MPI_Comm_free(&column), MPI_Comm_free(&turned), MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
