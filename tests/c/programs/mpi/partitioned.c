/* A message in partitions: each goes when it is ready, in any order and from any thread, and the
 * receiver may cut the same data otherwise.
 *
 * ranks: 2
 * expected:
 *   round 0: nothing is there at first, then 1 0 0, then all
 *   round 1: nothing is there at first, then 1 0 0, then all
 *   round 0, cut in 2, of a column: 0 1 2 3 4 5 6 7 8 9 10 11
 *   round 1, cut in 2, of a column: 12 13 14 15 16 17 18 19 20 21 22 23
 *   by threads: 0 1 2 3 4 5 6 7 8 9 10 11
 *   to nobody: there
 *   before the start, twice, and one that is not there: refused refused refused
 *   from anybody, with any tag, in no partitions: refused refused refused
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static MPI_Comm world = MPI_COMM_WORLD;
static int rank, numbers[24];

static void turn(void) { MPI_Barrier(world); }

static int has_arrived(MPI_Request request, int partition) {
    int flag;
    MPI_Parrived(request, partition, &flag);
    return flag;
}

/* Six partitions, of which the receiver makes three. */
static void two_rounds(void) {
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(numbers, 6, 2, MPI_INT, 1, 0, world, MPI_INFO_NULL, &request);
    else MPI_Precv_init(numbers, 3, 4, MPI_INT, 0, 0, world, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&request);
        int early[3] = {0};
        for (int i = 0; rank == 1 && i < 3; i++) early[i] = has_arrived(request, i);
        turn();
        if (rank == 0) {
            for (int i = 0; i < 12; i++) numbers[i] = 100 * round + i;
            MPI_Pready_range(0, 1, request);
            MPI_Pready(5, request);
        } else {
            while (!has_arrived(request, 0)) continue;
            printf("round %d: %s is there at first, then ", round,
                   early[0] || early[1] || early[2] ? "something" : "nothing");
            printf("%d %d %d, ", has_arrived(request, 0), has_arrived(request, 1),
                   has_arrived(request, 2));
        }
        turn();
        if (rank == 0) MPI_Pready_list(3, (int[]){4, 2, 3}, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int right = 1;
        for (int i = 0; i < 12; i++) right = right && numbers[i] == 100 * round + i;
        if (rank == 1) printf("then %s\n", right ? "all" : "something else");
    }
    MPI_Request_free(&request);
}

/* The receiver's partitions are columns of memory, and two of the sender's three reach into each. */
static void columns(void) {
    MPI_Request request;
    MPI_Datatype column;
    MPI_Type_vector(6, 1, 2, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    if (rank == 0) MPI_Psend_init(numbers, 3, 4, MPI_INT, 1, 1, world, MPI_INFO_NULL, &request);
    else MPI_Precv_init(numbers, 2, 1, column, 0, 1, world, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; rank == 0 && i < 12; i++) numbers[i] = 12 * round + i;
        MPI_Start(&request);
        for (int i = 2; rank == 0 && i >= 0; i--) MPI_Pready(i, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 1) printf("round %d, cut in 2, of a column:", round);
        for (int i = 0; rank == 1 && i < 12; i++) printf(" %d", numbers[i % 6 * 2 + i / 6]);
        if (rank == 1) printf("\n");
    }
    MPI_Request_free(&request);
    MPI_Type_free(&column);
}

static MPI_Request shared;

static void *work(void *own) {
    int part = (int)(long)own;
    for (int i = 3 * part; i < 3 * part + 3; i++) numbers[i] = i;
    MPI_Pready(part, shared);
    return 0;
}

static void threads(void) {
    pthread_t all[4];
    if (rank == 0) MPI_Psend_init(numbers, 4, 3, MPI_INT, 1, 2, world, MPI_INFO_NULL, &shared);
    else MPI_Precv_init(numbers, 1, 12, MPI_INT, 0, 2, world, MPI_INFO_NULL, &shared);
    MPI_Start(&shared);
    for (long i = 0; rank == 0 && i < 4; i++) pthread_create(&all[i], 0, work, (void *)i);
    MPI_Wait(&shared, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 0 && i < 4; i++) pthread_join(all[i], 0);
    if (rank == 1) printf("by threads:");
    for (int i = 0; rank == 1 && i < 12; i++) printf(" %d", numbers[i]);
    if (rank == 1) printf("\n");
    MPI_Request_free(&shared);
}

static const char *word(int code) { return code == MPI_SUCCESS ? "done" : "refused"; }

static void alone(void) {
    MPI_Request request, other;
    MPI_Psend_init(numbers, 2, 1, MPI_INT, MPI_PROC_NULL, 0, world, MPI_INFO_NULL, &request);
    MPI_Precv_init(numbers, 2, 1, MPI_INT, MPI_PROC_NULL, 0, world, MPI_INFO_NULL, &other);
    MPI_Start(&other);
    printf("to nobody: %s\n", has_arrived(other, 1) ? "there" : "not there");
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Request_free(&other);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    printf("before the start, twice, and one that is not there: %s ", word(MPI_Pready(0, request)));
    MPI_Start(&request);
    MPI_Pready_range(0, 1, request);
    printf("%s %s\n", word(MPI_Pready(0, request)), word(MPI_Pready(2, request)));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Info none = MPI_INFO_NULL;
    printf("from anybody, with any tag, in no partitions: %s ",
           word(MPI_Precv_init(numbers, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, world, none, &other)));
    printf("%s ", word(MPI_Precv_init(numbers, 1, 1, MPI_INT, 0, MPI_ANY_TAG, world, none, &other)));
    printf("%s\n", word(MPI_Precv_init(numbers, 0, 1, MPI_INT, 0, 0, world, none, &other)));
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(world, &rank);
    two_rounds();
    columns();
    threads();
    if (rank == 1) alone();
    MPI_Finalize();
    return 0;
}
