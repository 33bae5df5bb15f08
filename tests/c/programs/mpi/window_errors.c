/* A wrong call gives an error that says why, and leaves the window as it was.
 *
 * ranks: 2
 * expected:
 *   without an epoch: MPI_ERR_RMA_SYNC
 *   without a lock: MPI_ERR_RMA_SYNC
 *   locked twice: MPI_ERR_RMA_SYNC
 *   a fence under a lock: MPI_ERR_RMA_SYNC
 *   before the beginning: MPI_ERR_DISP
 *   the rank: MPI_ERR_RANK
 *   the operation: MPI_ERR_OP
 *   the datatypes: MPI_ERR_TYPE
 *   nothing was posted: MPI_ERR_RMA_SYNC
 *   nothing was started: MPI_ERR_RMA_SYNC
 *   no window: MPI_ERR_WIN
 *   the value is 42
 *   the handler has heard of 2 errors
 */
#include <mpi.h>
#include <stdio.h>

static int heard, rank;

static void hear(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
    heard++;
}

static void expect(const char *what, int code)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {{MPI_SUCCESS, "MPI_SUCCESS"},       {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC"},
                 {MPI_ERR_DISP, "MPI_ERR_DISP"},     {MPI_ERR_RANK, "MPI_ERR_RANK"},
                 {MPI_ERR_OP, "MPI_ERR_OP"},         {MPI_ERR_TYPE, "MPI_ERR_TYPE"},
                 {MPI_ERR_WIN, "MPI_ERR_WIN"}};
    int class;
    const char *name = "another error";
    MPI_Error_class(code, &class);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].class == class)
            name = names[i].name;
    if (rank == 0)
        printf("%s: %s\n", what, name);
}

int main(int argc, char **argv)
{
    int size, *memory, value = 42, found = 0;
    double real = 1;
    MPI_Win win;
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_allocate(10 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    int other = 1 - rank;

    expect("without an epoch", MPI_Put(&value, 1, MPI_INT, other, 0, 1, MPI_INT, win));
    expect("without a lock", MPI_Win_unlock(other, win));
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    expect("locked twice", MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    expect("a fence under a lock", MPI_Win_fence(0, win));
    expect("before the beginning", MPI_Put(&value, 1, MPI_INT, other, -1, 1, MPI_INT, win));
    expect("the rank", MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win));
    expect("the operation",
           MPI_Accumulate(&value, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_OP_NULL, win));
    expect("the datatypes",
           MPI_Accumulate(&real, 1, MPI_DOUBLE, other, 0, 2, MPI_INT, MPI_SUM, win));
    MPI_Put(&value, 1, MPI_INT, other, 3, 1, MPI_INT, win);
    MPI_Win_unlock(other, win);
    expect("nothing was posted", MPI_Win_wait(win));
    expect("nothing was started", MPI_Win_complete(win));
    expect("no window", MPI_Win_fence(0, MPI_WIN_NULL));
    MPI_Win_fence(0, win);
    MPI_Get(&found, 1, MPI_INT, other, 3, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        printf("the value is %d\n", found);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_create_errhandler(hear, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    MPI_Put(&value, 1, MPI_INT, other, 3, 1, MPI_INT, win);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    if (rank == 0)
        printf("the handler has heard of %d errors\n", heard);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
