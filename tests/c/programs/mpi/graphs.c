/* Graphs of processes: made by all, by each of its own edges, and by one process for all; and what
 * is no graph.
 *
 * ranks: 4
 * expected:
 *   graph of 3 nodes and 4 edges; rank 3 is not in it
 *   node 0: 1 2, node 1: 0, node 2: 0
 *   mapped: 0 1 2 none
 *   1 goes into rank 2, 1 out, weighted: from 1 (5), to 3 (7)
 *   a duplicate is a distributed graph, a split one has no topology
 *   rank 0 alone knew: 1 in, 1 out | 1 in, 1 out | 1 in, 1 out | 1 in, 1 out
 *   refused: falls, too many nodes, half weighted, another topology
 */
#include <mpi.h>
#include <stdio.h>

static int rank, first = 1;

static void refused(const char *name, int code, int expected) {
    int class;
    MPI_Error_class(code, &class);
    if (rank == 0 && class == expected) printf("%s %s", first ? "refused:" : ",", name), first = 0;
}

int main(int argc, char **argv) {
    MPI_Comm world = MPI_COMM_WORLD, graph, copy;
    int index[3] = {2, 3, 4}, edges[4] = {1, 2, 0, 0}, nodes, count, near[4], kind;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);

    MPI_Graph_create(world, 3, index, edges, 1, &graph);
    if (rank == 0) {
        MPI_Graphdims_get(graph, &nodes, &count);
        printf("graph of %d nodes and %d edges; rank 3 is not in it\nnode", nodes, count);
        for (int node = 0; node < 3; node++) {
            MPI_Graph_neighbors_count(graph, node, &count);
            MPI_Graph_neighbors(graph, node, count, near);
            printf(node ? ", node %d:" : " %d:", node);
            for (int i = 0; i < count; i++) printf(" %d", near[i]);
        }
        printf("\n");
        MPI_Graph_get(graph, 3, 4, near, edges);
        if (near[1] != 3 || edges[1] != 2) printf("not the graph that was made\n");
    }
    if (rank == 3 && graph != MPI_COMM_NULL) printf("rank 3 is in it\n");
    if (graph != MPI_COMM_NULL) MPI_Comm_free(&graph);
    int place, places[4];
    MPI_Graph_map(world, 3, index, edges, &place);
    MPI_Gather(&place, 1, MPI_INT, places, 1, MPI_INT, 0, world);
    if (rank == 0)
        printf("mapped: %d %d %d %s\n", places[0], places[1], places[2],
               places[3] == MPI_UNDEFINED ? "none" : "some");

    /* A line: each knows its own. */
    int last = rank - 1, next = rank + 1, into = rank > 0, out = rank < 3, five = 5, seven = 7;
    MPI_Dist_graph_create_adjacent(world, into, &last, into ? &five : MPI_WEIGHTS_EMPTY, out,
                                   &next, out ? &seven : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                   &graph);
    int weighted, source, destination, weight[2], numbers[6];
    MPI_Dist_graph_neighbors_count(graph, &into, &out, &weighted);
    if (rank == 2) {
        MPI_Dist_graph_neighbors(graph, 1, &source, weight, 1, &destination, weight + 1);
        int told[7] = {into, out, weighted, source, weight[0], destination, weight[1]};
        MPI_Send(told, 7, MPI_INT, 0, 0, world);
    }
    if (rank == 0) {
        int told[7];
        MPI_Recv(told, 7, MPI_INT, 2, 0, world, MPI_STATUS_IGNORE);
        printf("%d goes into rank 2, %d out, %s: from %d (%d), to %d (%d)\n", told[0], told[1],
               told[2] ? "weighted" : "not weighted", told[3], told[4], told[5], told[6]);
    }
    MPI_Comm_dup(graph, &copy);
    MPI_Topo_test(copy, &kind);
    if (rank == 0)
        printf("a duplicate is %s,", kind == MPI_DIST_GRAPH ? "a distributed graph" : "not");
    MPI_Comm_free(&copy);
    MPI_Comm_split(graph, 0, 0, &copy);
    MPI_Topo_test(copy, &kind);
    if (rank == 0) printf(" a split one has %s\n", kind == MPI_UNDEFINED ? "no topology" : "one");
    MPI_Comm_free(&copy), MPI_Comm_free(&graph);

    /* A ring, of which rank 0 alone says all edges. */
    int sources[4] = {0, 1, 2, 3}, degrees[4] = {1, 1, 1, 1}, destinations[4] = {1, 2, 3, 0};
    MPI_Dist_graph_create(world, rank == 0 ? 4 : 0, sources, degrees, destinations, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, numbers, numbers + 1, &weighted);
    MPI_Dist_graph_neighbors(graph, 1, &source, MPI_UNWEIGHTED, 1, &destination, MPI_UNWEIGHTED);
    if (weighted || source != (rank + 3) % 4 || destination != (rank + 1) % 4) printf("no ring\n");
    int all[8];
    MPI_Gather(numbers, 2, MPI_INT, all, 2, MPI_INT, 0, world);
    if (rank == 0) {
        printf("rank 0 alone knew:");
        for (int r = 0; r < 4; r++)
            printf("%s %d in, %d out", r ? " |" : "", all[2 * r], all[2 * r + 1]);
        printf("\n");
    }
    MPI_Comm_free(&graph);

    MPI_Comm alone = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
    int negative = -1, self = 0, one = 1, zeros[2] = {0, 0};
    refused("falls", MPI_Graph_create(alone, 1, &negative, zeros, 0, &graph), MPI_ERR_ARG);
    refused("too many nodes", MPI_Graph_create(alone, 2, zeros, zeros, 0, &graph), MPI_ERR_ARG);
    int code = MPI_Dist_graph_create_adjacent(alone, 1, &self, &one, 1, &self, MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 0, &graph);
    refused("half weighted", code, MPI_ERR_TOPOLOGY);
    MPI_Graph_create(alone, 1, zeros, zeros, 0, &graph);
    code = MPI_Dist_graph_neighbors_count(graph, &into, &out, &weighted);
    refused("another topology", code, MPI_ERR_TOPOLOGY);
    MPI_Comm_free(&graph);
    if (rank == 0) printf("\n");
    MPI_Finalize();
    return 0;
}
