/* Collectives among neighbours: on grids with an edge and without one, also where both neighbours
 * are the same process, and on graphs with several edges between two processes.
 *
 * ranks: 4
 * expected:
 *   line: -1 1 | 0 2 | 1 3 | 2 -1
 *   ring, each way: 31 10 | 1 20 | 11 30 | 21 0
 *   two of a ring: 11 10 | 1 0
 *   alone in two dimensions: 1 0 3 2
 *   star: 1 2 3 | 0 | 0 | 0
 *   two edges and one to itself: 31 32 3 | 1 2 13 | 11 12 23 | 21 22 33
 *   v: 3 1 1 1 | 0 0 2 2 | 1 1 3 3 3 | 2 2 2 0
 *   within one array: 2 1 2 1
 *   without neighbours: done
 */
#include <mpi.h>
#include <stdio.h>

static int rank;

static void show(const char *name, const int *own, int count) {
    int all[4][8], counts[4];
    MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(own, 8, MPI_INT, all, 8, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    printf("%s:", name);
    for (int r = 0, printed = 0; r < 4; r++) {
        if (counts[r] > 0 && printed++) printf(" |");
        for (int i = 0; i < counts[r]; i++) printf(" %d", all[r][i]);
    }
    printf("\n");
}

static MPI_Comm grid(MPI_Comm of, int dims, const int *sizes, int periodic) {
    MPI_Comm made;
    int periods[2] = {periodic, periodic};
    MPI_Cart_create(of, dims, sizes, periods, 0, &made);
    return made;
}

int main(int argc, char **argv) {
    MPI_Comm comm, pair;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    /* The place of a missing neighbour stays as it is. */
    int got[8] = {-1, -1}, sent[8];
    comm = grid(MPI_COMM_WORLD, 1, (int[]){4}, 0);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, comm);
    show("line", got, 2);
    MPI_Comm_free(&comm);

    comm = grid(MPI_COMM_WORLD, 1, (int[]){4}, 1);
    sent[0] = 10 * rank, sent[1] = 10 * rank + 1;
    MPI_Ineighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    show("ring, each way", got, 2);
    MPI_Comm_free(&comm);

    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    if (rank < 2) {
        comm = grid(pair, 1, (int[]){2}, 1);
        MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
        MPI_Comm_free(&comm), MPI_Comm_free(&pair);
    }
    show("two of a ring", got, rank < 2 ? 2 : 0);

    comm = grid(MPI_COMM_SELF, 2, (int[]){1, 1}, 1);
    for (int i = 0; i < 4; i++) sent[i] = i;
    MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
    show("alone in two dimensions", got, rank == 0 ? 4 : 0);
    MPI_Comm_free(&comm);

    MPI_Graph_create(MPI_COMM_WORLD, 4, (int[]){3, 4, 5, 6}, (int[]){1, 2, 3, 0, 0, 0}, 0, &comm);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, comm);
    show("star", got, rank == 0 ? 3 : 1);
    MPI_Comm_free(&comm);

    /* Two edges to the next process, and one to itself. */
    int last = (rank + 3) % 4, next = (rank + 1) % 4;
    int sources[3] = {last, last, rank}, destinations[3] = {next, next, rank};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, MPI_UNWEIGHTED, 3, destinations,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    for (int i = 0; i < 3; i++) sent[i] = 10 * rank + i + 1;
    MPI_Neighbor_alltoall_init(sent, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) MPI_Start(&request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    show("two edges and one to itself", got, 3);
    MPI_Comm_free(&comm);

    /* So many come to each from the one before it, and from the one behind it. */
    comm = grid(MPI_COMM_WORLD, 1, (int[]){4}, 1);
    int before[4] = {1, 2, 2, 3}, behind[4] = {3, 2, 3, 1};
    int counts[2] = {before[rank], behind[rank]}, places[2] = {0, before[rank]};
    for (int i = 0; i < 8; i++) sent[i] = rank;
    MPI_Neighbor_alltoallv(sent, (int[]){behind[last], before[next]}, (int[]){0, 0}, MPI_INT, got,
                           counts, places, MPI_INT, comm);
    show("v", got, before[rank] + behind[rank]);
    MPI_Comm_free(&comm);

    /* At the ends of the array is what comes, and beside it what is sent. */
    comm = grid(MPI_COMM_SELF, 1, (int[]){1}, 1);
    int array[8] = {0, 1, 2, 0}, ones[2] = {1, 1};
    MPI_Aint inner[2] = {sizeof(int), 2 * sizeof(int)}, outer[2] = {0, 3 * sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Neighbor_alltoallw(array, ones, inner, types, array, ones, outer, types, comm);
    show("within one array", array, rank == 0 ? 4 : 0);
    MPI_Comm_free(&comm);

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                   MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, comm);
    MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, comm);
    if (rank == 0) printf("without neighbours: done\n");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
