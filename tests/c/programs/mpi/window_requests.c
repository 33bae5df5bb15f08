/* Operations whose end a request says.
 *
 * ranks: 3
 * expected:
 *   from the next one 1000 numbers come, 499500 in all, then 500500
 *   what was there before 500000, then 499500
 */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 1000 };

static long total(const long *numbers)
{
    long sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += numbers[i];
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size;
    long *memory, mine[COUNT], ones[COUNT], first[COUNT], second[COUNT], before[COUNT];
    MPI_Win win;
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size;
    for (int i = 0; i < COUNT; i++) {
        mine[i] = i;
        ones[i] = 1;
    }
    MPI_Win_allocate(COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Rput(mine, COUNT / 2, MPI_LONG, next, 0, COUNT / 2, MPI_LONG, win, &requests[0]);
    MPI_Rput(mine + COUNT / 2, COUNT / 2, MPI_LONG, next, COUNT / 2, COUNT / 2, MPI_LONG, win,
             &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(next, win);
    MPI_Rget(first, COUNT, MPI_LONG, next, 0, COUNT, MPI_LONG, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Raccumulate(ones, COUNT, MPI_LONG, next, 0, COUNT, MPI_LONG, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(next, win);
    MPI_Rget_accumulate(mine, COUNT, MPI_LONG, before, COUNT, MPI_LONG, next, 0, COUNT, MPI_LONG,
                        MPI_REPLACE, win, &requests[0]);
    MPI_Rget(second, 0, MPI_LONG, MPI_PROC_NULL, 0, 0, MPI_LONG, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock(next, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("from the next one %d numbers come, %ld in all, then %ld\n", COUNT, total(first),
               total(before));
        MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
        MPI_Rget(second, COUNT, MPI_LONG, next, 0, COUNT, MPI_LONG, win, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Win_unlock(next, win);
        printf("what was there before %ld, then %ld\n", total(before) - COUNT / 2, total(second));
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
