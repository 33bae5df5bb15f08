/* Persistent requests: made once, started in every step of a computation on a ring.
 *
 * ranks: 4
 * expected:
 *   after 5 steps: 17 10 11 12
 *   ready and synchronous ones too: 0 wrong
 *   requests gone: yes
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, mine, got, all[4], wrong = 0, sum;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Send_init(&mine, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&got, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses); /* not started: nothing to wait for */
    wrong += statuses[1].MPI_SOURCE != MPI_ANY_SOURCE;
    mine = rank < 3 ? 10 + rank : 17;
    for (int step = 0; step < 5; step++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        wrong += statuses[1].MPI_SOURCE != previous || statuses[1].MPI_TAG != 3;
        mine = got;
    }
    MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("after 5 steps: %d %d %d %d\n", all[0], all[1], all[2], all[3]);
    MPI_Request_free(&requests[0]), MPI_Request_free(&requests[1]);
    int gone = requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL;
    MPI_Ssend_init(&rank, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&got, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &requests[1]);
    for (int step = 0; step < 3; step++) {
        int done = 0;
        MPI_Start(&requests[1]);
        MPI_Start(&requests[0]);
        while (!done) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        wrong += got != previous;
    }
    MPI_Request_free(&requests[0]);
    MPI_Rsend_init(&rank, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Start(&requests[1]);
    MPI_Barrier(MPI_COMM_WORLD); /* everybody is ready now */
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    wrong += got != previous;
    MPI_Request_free(&requests[0]), MPI_Request_free(&requests[1]);
    MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("ready and synchronous ones too: %d wrong\nrequests gone: %s\n", sum, gone ? "yes" : "no");
    MPI_Finalize();
    return 0;
}
