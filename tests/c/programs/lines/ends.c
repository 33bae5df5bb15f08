/* A program that prints "before" and ends in the wrong way, which its first word chooses. The second
 * word says what the others do meanwhile. Rank 1 is wrong, or all ranks if the third word is "all". */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **words;
static int wrong, number;

static int is(int nth, const char *word)
{
    return strcmp(words[nth], word) == 0;
}

static int wants(const char *word)
{
    return wrong && is(1, word);
}

static void others(void)
{
    if (is(2, "compute"))
        for (volatile long i = 0;; i++) continue;
    if (is(2, "sleep"))
        for (;;) pause();
    if (is(2, "receive"))
        MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is(2, "barrier"))
        MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    int provided;
    if (argc < 4)
        return 99;
    words = argv;
    wrong = is(3, "all") || strcmp(getenv("SFM_MPI_RANK"), "1") == 0;
    if (wants("never-init"))
        return 0;
    if (wants("rank-before-init"))
        MPI_Comm_rank(MPI_COMM_WORLD, &number);
    if (wants("send-before-init"))
        MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (wants("finalize-before-init"))
        MPI_Finalize();
    if (wants("abort-before-init"))
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Init(&argc, &argv);
    if (wants("init-twice"))
        MPI_Init(&argc, &argv);
    if (wants("init-thread-twice"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (wants("no-finalize"))
        return 0;
    if (wants("exit"))
        exit(3);
    if (wants("_exit"))
        _exit(0);
    if (wants("kill"))
        raise(SIGKILL);
    if (wants("wrong-rank"))
        MPI_Send(&number, 1, MPI_INT, 17, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, wrong, 0, &half);
    MPI_Barrier(MPI_COMM_WORLD);
    if (wrong)
        printf("before");
    if (wants("not"))
        puts(" the end");
    if (wants("abort"))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (wants("abort-half"))
        MPI_Abort(half, 263);
    if (wants("abort-256"))
        MPI_Abort(half, 256);
    if (wants("abort-0"))
        MPI_Abort(MPI_COMM_SELF, 0);
    if (!wrong)
        others();
    MPI_Comm_free(&half);
    MPI_Finalize();
    if (wants("finalize-twice"))
        MPI_Finalize();
    if (wants("init-again"))
        MPI_Init(&argc, &argv);
    if (wants("rank-after"))
        MPI_Comm_rank(MPI_COMM_WORLD, &number);
    if (wants("abort-after"))
        MPI_Abort(MPI_COMM_WORLD, 6);
    return wants("status") ? 4 : 0;
}
