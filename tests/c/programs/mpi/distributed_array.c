/* An array that is distributed among a grid of processes: each has its part as one datatype, and
 * the root puts the whole together again.
 *
 * ranks: 6
 * expected:
 *   blocks, by rows: 000011112222333344445555
 *   cycles of rows, and of 2 columns: 001100112233223344554455
 *   cycles, in columns: 012345012345012345012345
 *   the same, column by column: 030303141414252525030303
 *   rows as they are: 001122334455001122334455
 *   a process without an element: size 0, extent 20
 *   a grid of too few: refused
 *   blocks that are too short: refused
 *   a distributed dimension that is none: refused
 *   no such order: refused
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ALL = 24 };
static int rank, size;

/* Everybody fills its part with its rank; what the root then has is printed. */
static void distribute(const char *what, int dims, const int *sizes, const int *kinds,
                       const int *cuts, const int *grid, int order) {
    char own[ALL], whole[ALL + 1] = "";
    int bytes;
    MPI_Datatype part;
    MPI_Type_create_darray(size, rank, dims, sizes, kinds, cuts, grid, order, MPI_CHAR, &part);
    MPI_Type_commit(&part);
    MPI_Type_size(part, &bytes);
    memset(own, '0' + rank, sizeof own);
    MPI_Request request;
    MPI_Isend(own, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    for (int other = 0; rank == 0 && other < size; other++) {
        MPI_Datatype theirs;
        MPI_Type_create_darray(size, other, dims, sizes, kinds, cuts, grid, order, MPI_CHAR,
                               &theirs);
        MPI_Type_commit(&theirs);
        MPI_Recv(whole, 1, theirs, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&theirs);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&part);
    if (rank == 0) printf("%s: %s\n", what, whole);
}

static void refused(const char *what, int kind, int cut, int grid, int order) {
    MPI_Datatype part;
    int sizes[] = {20}, code;
    code = MPI_Type_create_darray(2, 0, 1, sizes, &kind, &cut, &grid, order, MPI_CHAR, &part);
    printf("%s: %s\n", what, code == MPI_SUCCESS ? "made" : "refused");
}

int main(int argc, char **argv) {
    enum { BLOCK = MPI_DISTRIBUTE_BLOCK, CYCLIC = MPI_DISTRIBUTE_CYCLIC };
    enum { NONE = MPI_DISTRIBUTE_NONE, USUAL = MPI_DISTRIBUTE_DFLT_DARG };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    distribute("blocks, by rows", 2, (int[]){6, 4}, (int[]){BLOCK, NONE}, (int[]){USUAL, USUAL},
               (int[]){6, 1}, MPI_ORDER_C);
    distribute("cycles of rows, and of 2 columns", 2, (int[]){3, 8}, (int[]){CYCLIC, CYCLIC},
               (int[]){USUAL, 2}, (int[]){3, 2}, MPI_ORDER_C);
    distribute("cycles, in columns", 2, (int[]){4, 6}, (int[]){NONE, CYCLIC},
               (int[]){USUAL, USUAL}, (int[]){1, 6}, MPI_ORDER_C);
    distribute("the same, column by column", 2, (int[]){6, 4}, (int[]){CYCLIC, CYCLIC},
               (int[]){USUAL, USUAL}, (int[]){2, 3}, MPI_ORDER_FORTRAN);
    distribute("rows as they are", 1, (int[]){24}, (int[]){CYCLIC}, (int[]){2}, (int[]){6},
               MPI_ORDER_C);
    if (rank == 0) {
        MPI_Datatype part;
        MPI_Aint lb, extent;
        int bytes, sizes[] = {20}, kind = BLOCK, cut = 10, grid = 4;
        MPI_Type_create_darray(4, 3, 1, sizes, &kind, &cut, &grid, MPI_ORDER_C, MPI_CHAR, &part);
        MPI_Type_size(part, &bytes);
        MPI_Type_get_extent(part, &lb, &extent);
        printf("a process without an element: size %d, extent %d\n", bytes, (int)extent);
        MPI_Type_free(&part);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        refused("a grid of too few", BLOCK, USUAL, 1, MPI_ORDER_C);
        refused("blocks that are too short", BLOCK, 9, 2, MPI_ORDER_C);
        refused("a distributed dimension that is none", NONE, USUAL, 2, MPI_ORDER_C);
        refused("no such order", BLOCK, USUAL, 2, -1);
    }
    MPI_Finalize();
    return 0;
}
