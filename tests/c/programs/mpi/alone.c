/* One rank alone: collectives, messages to oneself, COMM_SELF.
 *
 * ranks: 1
 * expected:
 *   1 rank, sum 5, gathered 5
 *   from myself: 1 2 3
 *   self has 1 rank
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int size, self, five = 5, sum, gathered, out[3] = {1, 2, 3}, in[3];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_size(MPI_COMM_SELF, &self);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&five, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(&five, 1, MPI_INT, &gathered, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Irecv(in, 3, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(out, 3, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("%d rank, sum %d, gathered %d\nfrom myself: %d %d %d\n", size, sum, gathered, in[0], in[1], in[2]);
    printf("self has %d rank\n", self);
    MPI_Finalize();
    return 0;
}
