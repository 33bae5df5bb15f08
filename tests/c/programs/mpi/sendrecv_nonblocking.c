/* A send and a receive as one request, requests that are asked and not completed, and messages with
 * nobody at the other end.
 *
 * ranks: 4
 * expected:
 *   from the left: 30 0 10 20
 *   replaced by the right one's: 20 30 40 10
 *   large ones replaced: yes yes yes yes
 *   at the edge: source is MPI_PROC_NULL: yes, buffer untouched: yes
 *   nobody needs no datatype: yes
 *   flushed: yes
 *   asked: none done, one done (2), all done
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 300000 };

static int rank, size;

static void show(const char *what, int mine, int as_words) {
    int all[4];
    MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank > 0) return;
    printf("%s:", what);
    for (int i = 0; i < size; i++)
        if (as_words) printf(" %s", all[i] ? "yes" : "no");
        else printf(" %d", all[i]);
    printf("\n");
}

static const char *word(int truth) { return truth ? "yes" : "no"; }

int main(int argc, char **argv) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request, requests[3];
    MPI_Status status;
    int got = 0, flag, none, which, some, indices[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size, mine = rank * 10;

    MPI_Isendrecv(&mine, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, world, &request);
    MPI_Wait(&request, &status);
    show("from the left", status.MPI_SOURCE == left ? got : -1, 0);

    mine = (rank + 1) * 10;
    MPI_Isendrecv_replace(&mine, 1, MPI_INT, left, 1, right, 1, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    show("replaced by the right one's", mine, 0);

    double *many = malloc(2 * LARGE * sizeof(double));
    MPI_Datatype every_other;
    MPI_Type_vector(LARGE, 1, 2, MPI_DOUBLE, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < 2 * LARGE; i++) many[i] = rank + 1;
    MPI_Isendrecv_replace(many, 1, every_other, right, 2, left, 2, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int right_ones = 1;
    for (int i = 0; i < LARGE; i++)
        right_ones &= many[2 * i] == left + 1 && many[2 * i + 1] == rank + 1;
    show("large ones replaced", right_ones, 1);
    MPI_Type_free(&every_other);
    free(many);

    got = 5;
    MPI_Isendrecv(&mine, 1, MPI_INT, MPI_PROC_NULL, 0, &got, 1, MPI_INT, MPI_PROC_NULL, 0, world,
                  &request);
    MPI_Wait(&request, &status);
    if (rank == 0)
        printf("at the edge: source is MPI_PROC_NULL: %s, buffer untouched: %s\n",
               word(status.MPI_SOURCE == MPI_PROC_NULL), word(got == 5));
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world);
    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, world, &request);
    MPI_Wait(&request, &status);
    if (rank == 0) printf("nobody needs no datatype: %s\n", word(status.MPI_TAG == MPI_ANY_TAG));

    int room = sizeof(int) + MPI_BSEND_OVERHEAD;
    void *buffer = malloc(room);
    MPI_Buffer_attach(buffer, room);
    MPI_Bsend(&rank, 1, MPI_INT, right, 3, world);
    MPI_Buffer_iflush(&request);
    MPI_Recv(&got, 1, MPI_INT, left, 3, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);
    if (rank == 0) printf("flushed: %s\n", word(got == left));

    int in[3];
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, left, 10 + i, world, &requests[i]);
    MPI_Request_get_status_any(3, requests, &which, &none, &status);
    MPI_Barrier(world);
    MPI_Send(&rank, 1, MPI_INT, right, 12, world);
    do MPI_Request_get_status_some(3, requests, &some, indices, MPI_STATUSES_IGNORE);
    while (some == 0);
    MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
    MPI_Barrier(world);
    if (rank == 0) printf("asked: %s done, ", none ? "some" : "none");
    if (rank == 0) printf("%s done (%d), ", some == 1 && !flag ? "one" : "many", indices[0]);
    MPI_Send(&rank, 1, MPI_INT, right, 10, world);
    MPI_Send(&rank, 1, MPI_INT, right, 11, world);
    do MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
    while (!flag);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) printf("all done\n");
    MPI_Finalize();
    return 0;
}
