/* 3 ranks: 0 expects data of 2, but 2 names 1 as its only destination, and comes to its end.
 * says: 0 is in MPI_Neighbor_allgather(sources=[2], destinations=[1], comm=a duplicate of MPI_COMM_WORLD) and waits for 2 in neighbours_not_mutual.c, line 17 (main).
 * says: 1 and 2 are in MPI_Finalize() of MPI_COMM_WORLD and wait for 0 in neighbours_not_mutual.c, line 18 (main).
 * not: must call them in the same order
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, got, sources[3] = {2, 0, 1}, destinations[3] = {1, 2, 1};
    MPI_Comm graph;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &sources[rank], MPI_UNWEIGHTED, 1, &destinations[rank],
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, graph);
    MPI_Finalize();
    return 0;
}
