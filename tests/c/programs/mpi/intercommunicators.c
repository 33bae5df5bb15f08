/* Two groups that talk to each other: every collective goes from one side to the other, also where
 * it is non-blocking. Sides of 2 and 3 processes; all ranks are those within a side.
 *
 * ranks: 5
 * expected:
 *   barrier, bcast 7 7 7 on the other side
 *   gather 0 10 20, scatter 5 6 7
 *   gatherv 0 10 10 20 20 20, scatterv 1 2 2 3 3 3
 *   allgather 0 10 20 here and 0 10 there
 *   alltoall 0 10 20 and 1 11 there
 *   alltoallv 0 10 10 20 20 20, alltoallw 0 10 10 20 20 20
 *   reduce 30, allreduce 10 there and 30 here
 *   reduce_scatter 60 60 here, 20 20 20 there
 *   split: rank 1 of 2 and 2; without a partner: null
 *   subset of 1 and 2; with an empty side: null
 *   merged in the order 2 3 4 0 1
 *   duplicates: congruent congruent
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int world_rank, rank, size, far, side;
static MPI_Comm inter;

/* Rank 0 of the world is told what a process of the other side has, and prints. */
static void tell(int from, const int *numbers, int count, const char *before, const char *after) {
    int got[8];
    if (side == 1 && rank == from) MPI_Send(numbers, count, MPI_INT, 0, 1, inter);
    if (world_rank != 0) return;
    MPI_Recv(got, count, MPI_INT, from, 1, inter, MPI_STATUS_IGNORE);
    printf("%s", before);
    for (int i = 0; i < count; i++) printf(" %d", got[i]);
    printf("%s", after);
}

static void show(const int *numbers, int count, const char *before, const char *after) {
    if (world_rank != 0) return;
    printf("%s", before);
    for (int i = 0; i < count; i++) printf(" %d", numbers[i]);
    printf("%s", after);
}

static void wait(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void collectives(void) {
    MPI_Request request;
    int number = 0, all[8] = {0}, own[3] = {10 * rank, 10 * rank, 10 * rank};
    /* The root is rank 0 of the first side. */
    int root = side == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Barrier(inter);
    MPI_Ibarrier(inter, &request), wait(&request);
    if (root == MPI_ROOT) number = 7;
    MPI_Bcast(&number, 1, MPI_INT, root, inter);
    if (world_rank == 0) printf("barrier, bcast");
    for (int r = 0; r < 3; r++)
        tell(r, &number, 1, "", r < 2 ? "" : " on the other side\n");

    MPI_Gather(own, 1, MPI_INT, all, 1, MPI_INT, root, inter);
    show(all, 3, "gather", ",");
    int from[6] = {5, 6, 7};
    MPI_Iscatter(from, 1, MPI_INT, &number, 1, MPI_INT, root, inter, &request), wait(&request);
    for (int r = 0; r < 3; r++)
        tell(r, &number, 1, r == 0 ? " scatter" : "", r < 2 ? "" : "\n");

    int counts[3] = {1, 2, 3}, places[3] = {0, 1, 3}, got[3] = {0};
    MPI_Igatherv(own, rank + 1, MPI_INT, all, counts, places, MPI_INT, root, inter, &request);
    wait(&request);
    show(all, 6, "gatherv", ",");
    memcpy(from, (int[]){1, 2, 2, 3, 3, 3}, sizeof from);
    MPI_Scatterv(from, counts, places, MPI_INT, got, rank + 1, MPI_INT, root, inter);
    for (int r = 0; r < 3; r++)
        tell(r, got, r + 1, r == 0 ? " scatterv" : "", r < 2 ? "" : "\n");

    MPI_Allgather(own, 1, MPI_INT, all, 1, MPI_INT, inter);
    show(all, 3, "allgather", " here and");
    tell(2, all, 2, "", " there\n");

    /* Ten times the sender's rank, and the receiver's. */
    for (int r = 0; r < far; r++) from[r] = 10 * rank + r;
    MPI_Ialltoall(from, 1, MPI_INT, all, 1, MPI_INT, inter, &request), wait(&request);
    show(all, 3, "alltoall", " and");
    tell(1, all, 2, "", " there\n");

    /* The first side sends nothing, each of the second as many as its rank counts from one. */
    int none[3] = {0}, same[2] = {rank + 1, rank + 1};
    int bytes[3] = {0, sizeof(int), 3 * sizeof(int)};
    int *sent = side == 0 ? none : same, *come = side == 0 ? counts : none;
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    memset(all, 0, sizeof all);
    MPI_Alltoallv(own, sent, none, MPI_INT, all, come, places, MPI_INT, inter);
    show(all, 6, "alltoallv", ",");
    memset(all, 0, sizeof all);
    MPI_Alltoallw(own, sent, none, types, all, come, bytes, types, inter);
    show(all, 6, " alltoallw", "\n");

    MPI_Reduce(own, &number, 1, MPI_INT, MPI_SUM, root, inter);
    show(&number, 1, "reduce", ", allreduce");
    MPI_Iallreduce(own, &number, 1, MPI_INT, MPI_SUM, inter, &request), wait(&request);
    tell(2, &number, 1, "", " there and");
    show(&number, 1, "", " here\n");

    /* Six numbers of each process; of the other side's sums each gets its part. */
    int six[6], parts[3] = {6 / size, 6 / size, 6 / size};
    for (int i = 0; i < 6; i++) six[i] = 20 * rank;
    MPI_Reduce_scatter(six, all, parts, MPI_INT, MPI_SUM, inter);
    MPI_Ireduce_scatter_block(six, all, 6 / size, MPI_INT, MPI_SUM, inter, &request);
    wait(&request);
    show(all, 2, "reduce_scatter", " here,");
    for (int r = 0; r < 3; r++) tell(r, all, 1, "", r < 2 ? "" : " there\n");
}

static void communicators(void) {
    MPI_Comm made;
    MPI_Request request;
    MPI_Group group, some;
    int own, near, across;
    /* The last two of each side, in reverse order; and colors that only one side has. */
    MPI_Comm_split(inter, rank >= size - 2 ? 3 : MPI_UNDEFINED, -rank, &made);
    if (world_rank == 0) {
        MPI_Comm_rank(made, &own), MPI_Comm_size(made, &near), MPI_Comm_remote_size(made, &across);
        printf("split: rank %d of %d and %d;", own, near, across);
    }
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    MPI_Comm_split(inter, side, 0, &made);
    if (world_rank == 0)
        printf(" without a partner: %s\n", made == MPI_COMM_NULL ? "null" : "some");

    MPI_Comm_group(inter, &group);
    MPI_Group_incl(group, size - 1, (int[]){0, 1}, &some);
    MPI_Comm_create(inter, some, &made);
    if (world_rank == 0) {
        MPI_Comm_size(made, &near), MPI_Comm_remote_size(made, &across);
        printf("subset of %d and %d;", near, across);
    }
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    MPI_Comm_create(inter, side == 0 ? some : MPI_GROUP_EMPTY, &made);
    if (world_rank == 0)
        printf(" with an empty side: %s\n", made == MPI_COMM_NULL ? "null" : "some");
    MPI_Group_free(&some), MPI_Group_free(&group);

    int order[5];
    MPI_Intercomm_merge(inter, side == 0, &made);
    MPI_Allgather(&world_rank, 1, MPI_INT, order, 1, MPI_INT, made);
    show(order, 5, "merged in the order", "\n");
    MPI_Comm_free(&made);

    int first, second, sum = 1;
    MPI_Comm_dup(inter, &made), MPI_Comm_compare(inter, made, &first), MPI_Comm_free(&made);
    MPI_Comm_idup(inter, &made, &request);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wait(&request), MPI_Comm_compare(inter, made, &second), MPI_Comm_free(&made);
    if (world_rank == 0)
        printf("duplicates: %s %s\n", first == MPI_CONGRUENT ? "congruent" : "else",
               second == MPI_CONGRUENT ? "congruent" : "else");
}

int main(int argc, char **argv) {
    MPI_Comm local;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    side = world_rank >= 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : 2, 0, &inter);
    MPI_Comm_rank(inter, &rank), MPI_Comm_size(inter, &size), MPI_Comm_remote_size(inter, &far);
    collectives();
    communicators();
    MPI_Comm_free(&inter), MPI_Comm_free(&local);
    MPI_Finalize();
    return 0;
}
