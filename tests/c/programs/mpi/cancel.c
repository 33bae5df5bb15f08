/* Sends that are taken back: large, synchronous, and persistent ones. A cancelled message
 * never arrives, and any other does.
 *
 * ranks: 2
 * order: any
 * expected:
 *   synchronous: taken back: yes
 *   large: taken back: yes
 *   persistent: taken back: yes, then sent: 3
 *   to itself: taken back: yes
 *   too late: taken back: no
 *   what arrived: 1 2 3 4
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1000000, TAG = 5, UNWANTED = 9 };

static const char *taken_back(MPI_Request *request) {
    MPI_Status status;
    int flag;
    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &flag);
    return flag ? "yes" : "no";
}

static void say(int number) { MPI_Send(&number, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD); }

int main(int argc, char **argv) {
    int rank, number = -1, got[4], flag;
    double *large = calloc(LARGE, sizeof(double));
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    if (rank == 0) {
        MPI_Issend(&number, 1, MPI_INT, 1, UNWANTED, world, &request);
        printf("synchronous: taken back: %s\n", taken_back(&request));
        say(1);
        MPI_Isend(large, LARGE, MPI_DOUBLE, 1, UNWANTED, world, &request);
        printf("large: taken back: %s\n", taken_back(&request));
        say(2);
        MPI_Ssend_init(&number, 1, MPI_INT, 1, UNWANTED, world, &request);
        MPI_Start(&request);
        printf("persistent: taken back: %s, ", taken_back(&request));
        number = 3;
        say(3);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("then sent: %d\n", number);
        MPI_Request_free(&request);
        MPI_Issend(&number, 1, MPI_INT, 0, UNWANTED, world, &request);
        printf("to itself: taken back: %s\n", taken_back(&request));
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &flag, MPI_STATUS_IGNORE);
        if (flag) printf("but it is there\n");
        number = 4;
        MPI_Issend(&number, 1, MPI_INT, 1, TAG, world, &request);
        MPI_Recv(&flag, 1, MPI_INT, 1, TAG, world, MPI_STATUS_IGNORE);
        printf("too late: taken back: %s\n", taken_back(&request));
    } else {
        for (int i = 0; i < 3; i++)
            MPI_Recv(&got[i], 1, MPI_INT, 0, TAG, world, MPI_STATUS_IGNORE);
        MPI_Recv(&number, 1, MPI_INT, 0, UNWANTED, world, MPI_STATUS_IGNORE);
        MPI_Recv(&got[3], 1, MPI_INT, 0, TAG, world, MPI_STATUS_IGNORE);
        got[2] = number;
        printf("what arrived: %d %d %d %d\n", got[0], got[1], got[2], got[3]);
        fflush(stdout);
        MPI_Send(&number, 1, MPI_INT, 0, TAG, world);
    }
    MPI_Finalize();
    free(large);
    return 0;
}
