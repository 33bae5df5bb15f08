/* MPI_IN_PLACE wherever the standard allows it.
 *
 * ranks: 4
 * expected:
 *   reduce 6 10, allreduce 24, scan 1 3 6 10
 *   gather 0 1 4 9, scatter 0 1 4 9
 *   allgather 10 11 12 13, alltoall 3 13 23 33
 *   reduce_scatter_block 6 10 14 18
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;

static void show(const char *what, int mine, const char *end) {
    int all[4];
    MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s %d %d %d %d%s", what, all[0], all[1], all[2], all[3], end);
}

int main(int argc, char **argv) {
    int two[2], number, four[4] = {-1, -1, -1, -1};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 1);
    two[0] = rank, two[1] = rank + 1;
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : two, two, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    number = rank + 1;
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_PROD, MPI_COMM_WORLD);
    if (rank == 0) printf("reduce %d %d, allreduce %d,", two[0], two[1], number);
    number = rank + 1;
    MPI_Scan(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show(" scan", number, "\n");

    number = rank * rank;
    if (rank == 1) {
        four[1] = number;
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, four, 1, MPI_INT, 1, MPI_COMM_WORLD);
        MPI_Send(four, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Scatter(four, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
    } else {
        MPI_Gather(&number, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
        if (rank == 0) MPI_Recv(four, 4, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &number, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("gather %d %d %d %d,", four[0], four[1], four[2], four[3]);
    show(" scatter", number, "\n");

    memset(four, 0, sizeof four);
    four[rank] = 10 + rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, four, 1, MPI_INT, MPI_COMM_WORLD);
    if (rank == 3) MPI_Send(four, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(four, 4, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("allgather %d %d %d %d,", four[0], four[1], four[2], four[3]);
    }
    for (int i = 0; i < 4; i++) four[i] = 10 * rank + i;
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, four, 1, MPI_INT, MPI_COMM_WORLD);
    if (rank == 3) MPI_Send(four, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(four, 4, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf(" alltoall %d %d %d %d\n", four[0], four[1], four[2], four[3]);
    }
    for (int i = 0; i < 4; i++) four[i] = rank + i;
    MPI_Reduce_scatter_block(MPI_IN_PLACE, four, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("reduce_scatter_block", four[0], "\n");
    MPI_Finalize();
    return 0;
}
