/* A program starts others, works with them, and goes on when they have gone.
 *
 * ranks: 2
 * order: any
 * expected:
 *   worker 0 of 3 has 2 parents, and is told: one two
 *   worker 1 of 3 has 2 parents, and is told: one two
 *   worker 2 of 3 has 2 parents, and is told: nothing
 *   together they are 5
 *   a program that is missing: MPI_ERR_SPAWN, and no process
 *   the last has gone on by itself
 */
#include "../checks/check.h"
#include <string.h>
#include <unistd.h>

static int big[1 << 18];

/* All of both sides in one group, the parents first. */
static void together(MPI_Comm both, int is_worker) {
    MPI_Comm all;
    int one = 1, sum, there, far;
    MPI_Comm_remote_size(both, &far);
    MPI_Intercomm_merge(both, is_worker, &all);
    MPI_Comm_rank(all, &there);
    CHECK(there == (is_worker ? far + rank : rank));
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == size + far);
    if (there == 0) printf("together they are %d\n", sum);
    MPI_Comm_free(&all);
}

static void work(MPI_Comm parent, int argc, char **argv) {
    int parents, *number, flag;
    MPI_Comm_remote_size(parent, &parents);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    CHECK(flag && *number == (rank == 2));
    printf("worker %d of %d has %d parents, and is told:", rank, size, parents);
    for (int n = 1; n < argc; n++) printf(" %s", argv[n]);
    printf(argc > 1 ? "\n" : " nothing\n");
    together(parent, 1);
    MPI_Recv(big, 1 << 18, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
    big[0] += rank;
    MPI_Send(big, 1 << 18, MPI_INT, 0, 2, parent);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
}

/* The program lives on after the end of those that started it. */
static void outlive(MPI_Comm parent) {
    MPI_Comm_disconnect(&parent);
    usleep(500000);
    if (rank == 0) printf("the last has gone on by itself\n");
}

static void start(char *own) {
    char *words[] = {"one", "two", NULL}, *commands[] = {own, own}, **argv[] = {words, MPI_ARGV_NULL};
    char *missing[] = {"outlives", NULL};
    int most[] = {2, 1}, codes[3] = {7, 7, 7}, class;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm workers;
    MPI_Comm_spawn_multiple(2, commands, argv, most, infos, 0, MPI_COMM_WORLD, &workers, codes);
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
    together(workers, 0);
    if (rank == 0) {
        MPI_Request sent[3];
        big[0] = 10;
        for (int n = 0; n < 3; n++) MPI_Isend(big, 1 << 18, MPI_INT, n, 1, workers, &sent[n]);
        MPI_Waitall(3, sent, MPI_STATUSES_IGNORE);
        for (int n = 0; n < 3; n++) {
            MPI_Recv(big, 1 << 18, MPI_INT, n, 2, workers, MPI_STATUS_IGNORE);
            CHECK(big[0] == 10 + n);
        }
    }
    MPI_Comm_disconnect(&workers);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    codes[0] = MPI_Comm_spawn("./there is none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &workers, &codes[1]);
    MPI_Error_class(codes[0], &class);
    if (rank == 0 && class == MPI_ERR_SPAWN && codes[1] != MPI_SUCCESS) {
        printf("a program that is missing: MPI_ERR_SPAWN, and no process\n");
    }
    MPI_Comm_spawn(own, missing, 1, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &workers, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&workers);
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) start(argv[0]);
    else if (argc > 1 && strcmp(argv[1], "outlives") == 0) outlive(parent);
    else work(parent, argc, argv);
    MPI_Finalize();
    return 0;
}
