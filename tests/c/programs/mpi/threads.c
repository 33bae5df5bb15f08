/* Three threads of each rank send and receive at the same time, each with its own tag.
 *
 * ranks: 2
 * expected:
 *   MPI_THREAD_MULTIPLE: yes
 *   3 threads, 200 messages each way: 0 wrong
 *   threads with a communicator each: 0 wrong
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#define THREADS 3
#define ROUNDS 200

static int rank;

typedef struct { int number, wrong; MPI_Comm comm; } Work;

static void *exchange(void *given) {
    Work *work = given;
    int other = 1 - rank, got, sum;
    for (int i = 0; i < ROUNDS; i++) {
        int mine = 1000000 * rank + 1000 * work->number + i;
        MPI_Request request;
        MPI_Isend(&mine, 1, MPI_INT, other, work->number, MPI_COMM_WORLD, &request);
        MPI_Recv(&got, 1, MPI_INT, other, work->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        work->wrong += got != 1000000 * other + 1000 * work->number + i;
    }
    for (int i = 0; i < 20; i++) {
        int mine = rank + work->number * i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, work->comm);
        work->wrong += 1000 * (sum != 1 + 2 * work->number * i);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, wrong[2] = {0, 0}, all[2];
    pthread_t threads[THREADS];
    Work works[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int t = 0; t < THREADS; t++) {
        works[t] = (Work){t, 0, MPI_COMM_NULL};
        MPI_Comm_dup(MPI_COMM_WORLD, &works[t].comm);
    }
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, exchange, &works[t]);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        MPI_Comm_free(&works[t].comm);
        wrong[0] += works[t].wrong % 1000;
        wrong[1] += works[t].wrong / 1000;
    }
    MPI_Reduce(wrong, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("MPI_THREAD_MULTIPLE: yes\n%d threads, %d messages each way: %d wrong\n", THREADS, ROUNDS, all[0]);
        printf("threads with a communicator each: %d wrong\n", all[1]);
    }
    MPI_Finalize();
    return 0;
}
