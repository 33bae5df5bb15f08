/* Buffered, synchronous and ready sends, blocking and not.
 *
 * ranks: 2
 * expected:
 *   buffered: both sent before either received, sums 4950 and 4950
 *   buffer given back: yes
 *   synchronous: not finished before it is received: yes
 *   ready: 7
 *   non-blocking: 10 11 12 13
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, numbers[100], got[100], sum = 0, sums[2], bytes, flag, go = 0;
    void *buffer, *back;
    MPI_Request request, requests[8];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm world = MPI_COMM_WORLD;
    int other = 1 - rank;
    for (int i = 0; i < 100; i++) numbers[i] = i;
    MPI_Pack_size(100, MPI_INT, world, &bytes);
    bytes += MPI_BSEND_OVERHEAD;
    buffer = malloc(bytes);
    MPI_Buffer_attach(buffer, bytes);
    MPI_Bsend(numbers, 100, MPI_INT, other, 0, world);
    for (int i = 0; i < 100; i++) numbers[i] = -1; /* the buffer has a copy */
    MPI_Barrier(world);
    MPI_Recv(got, 100, MPI_INT, other, 0, world, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&back, &flag);
    for (int i = 0; i < 100; i++) sum += got[i];
    MPI_Gather(&sum, 1, MPI_INT, sums, 1, MPI_INT, 0, world);
    if (rank == 0) {
        printf("buffered: both sent before either received, sums %d and %d\n", sums[0], sums[1]);
        printf("buffer given back: %s\n", back == buffer && flag == bytes ? "yes" : "no");
    }
    free(buffer);
    if (rank == 0) {
        MPI_Issend(&rank, 1, MPI_INT, 1, 1, world, &request);
        for (int i = 0, any = 0; i < 100; i++) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            any |= flag;
            if (i == 99) {
                MPI_Send(&go, 1, MPI_INT, 1, 2, world);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                printf("synchronous: not finished before it is received: %s\n", any ? "no" : "yes");
            }
        }
        MPI_Ssend(&rank, 1, MPI_INT, 1, 3, world);
        MPI_Irecv(&go, 1, MPI_INT, 1, 4, world, &request);
        MPI_Barrier(world);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("ready: %d\n", go);
    } else {
        MPI_Recv(&go, 1, MPI_INT, 0, 2, world, MPI_STATUS_IGNORE);
        MPI_Recv(&go, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
        MPI_Recv(&go, 1, MPI_INT, 0, 3, world, MPI_STATUS_IGNORE);
        MPI_Barrier(world); /* the receive is there */
        go = 7;
        MPI_Rsend(&go, 1, MPI_INT, 0, 4, world);
    }
    buffer = malloc(sizeof(int) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(buffer, sizeof(int) + MPI_BSEND_OVERHEAD);
    int out[4] = {10, 11, 12, 13}, in[4];
    for (int i = 0; i < 4; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, world, &requests[4 + i]);
    MPI_Barrier(world);
    MPI_Isend(&out[0], 1, MPI_INT, other, 0, world, &requests[0]);
    MPI_Issend(&out[1], 1, MPI_INT, other, 1, world, &requests[1]);
    MPI_Ibsend(&out[2], 1, MPI_INT, other, 2, world, &requests[2]);
    MPI_Irsend(&out[3], 1, MPI_INT, other, 3, world, &requests[3]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    MPI_Buffer_detach(&back, &flag);
    free(buffer);
    if (rank == 0) printf("non-blocking: %d %d %d %d\n", in[0], in[1], in[2], in[3]);
    MPI_Finalize();
    return 0;
}
