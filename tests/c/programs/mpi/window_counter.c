/* A counter that nobody minds: each rank takes numbers from it until there are no more, while its
 * owner does the same; each number is taken once.
 *
 * ranks: 5
 * expected:
 *   taken: 1000 numbers, their sum 499500
 *   counters: 500 1001 1000
 */
#include <mpi.h>
#include <stdio.h>

enum { NUMBERS = 1000 };

int main(int argc, char **argv)
{
    int rank, size;
    long *counters, one = 1, taken = 0, sum = 0;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(rank == 0 ? 3 * sizeof(long) : 0, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &counters, &win);
    if (rank == 0)
        counters[0] = counters[1] = counters[2] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (;;) {
        long number;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 2, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        if (number >= NUMBERS)
            break;
        taken++;
        sum += number;
    }
    /* Under an exclusive lock, get and put are as good as one step. */
    for (int i = 0; i < 100; i++) {
        long value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
    }
    /* The largest number of all, by several operations on one place. */
    MPI_Win_lock_all(0, win);
    for (long i = rank; i <= NUMBERS; i += size)
        MPI_Accumulate(&i, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_MAX, win);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    long both[2] = {taken, sum}, all[2];
    MPI_Reduce(both, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        long of_all = counters[2] - size;
        printf("taken: %ld numbers, their sum %ld\n", all[0], all[1]);
        printf("counters: %ld %ld %ld\n", counters[0], counters[1], of_all);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
