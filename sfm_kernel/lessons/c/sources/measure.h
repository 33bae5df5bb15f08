/* The measurements of the programs of this folder: batches of calls, and the median of them.
 *
 * A single small message takes less than a microsecond, so the programs read the clock around a
 * batch of them; the median ignores batches in which the machine did something else. Rank 0 chooses
 * the number of batches and sends it to the others, since all must do the same number.
 */
#ifndef SFM_BENCH_MEASURE_H
#define SFM_BENCH_MEASURE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BATCHES = 1000, FEWEST_BATCHES = 5, MOST_CALLS = 200 };

static const double BATCH_SECONDS = 2e-4;

struct batches {
    int batches, calls; /* calls of each batch */
    double seconds[MOST_BATCHES];
};

static inline int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Do `call(about)` on every rank for about `seconds`; on rank 0, `found` holds the seconds of one
 * call in each batch, sorted. */
static inline void measure(void (*call)(void *about), void *about, double seconds,
                           struct batches *found)
{
    int rank, plan[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 3; i++) /* opens channels, and touches the memory */
        call(about);
    double start = MPI_Wtime();
    for (int i = 0; i < 3; i++)
        call(about);
    double once = (MPI_Wtime() - start) / 3 + 1e-9;
    plan[1] = once > BATCH_SECONDS ? 1 : (int)(BATCH_SECONDS / once);
    plan[1] = plan[1] > MOST_CALLS ? MOST_CALLS : plan[1];
    double wanted = seconds / (plan[1] * once);
    plan[0] = wanted > MOST_BATCHES ? MOST_BATCHES : (int)wanted;
    plan[0] = plan[0] < FEWEST_BATCHES ? FEWEST_BATCHES : plan[0];
    MPI_Bcast(plan, 2, MPI_INT, 0, MPI_COMM_WORLD);

    found->batches = plan[0];
    found->calls = plan[1];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int batch = 0; batch < plan[0]; batch++) {
        start = MPI_Wtime();
        for (int i = 0; i < plan[1]; i++)
            call(about);
        found->seconds[batch] = (MPI_Wtime() - start) / plan[1];
    }
    qsort(found->seconds, plan[0], sizeof(double), ascending);
}

/* Print a line of JSON, on rank 0 only: microseconds of one call divided by `parts`. */
static inline void report(const char *what, long bytes, const struct batches *found, int parts)
{
    double sum = 0.0, scale = 1e6 / parts;
    for (int i = 0; i < found->batches; i++)
        sum += found->seconds[i];
    printf("{\"what\": \"%s\", \"bytes\": %ld, \"count\": %d, ", what, bytes,
           found->batches * found->calls);
    printf("\"us\": %.4f, \"mean_us\": %.4f, \"fastest_us\": %.4f}\n",
           found->seconds[found->batches / 2] * scale, sum / found->batches * scale,
           found->seconds[0] * scale);
    fflush(stdout);
}

/* Print what is wrong and end all ranks. */
static inline void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Memory for `bytes` that has been touched; ends all ranks if there is none. */
static inline char *memory(size_t bytes)
{
    char *found = malloc(bytes ? bytes : 1);
    if (found == NULL)
        fail("not enough memory for messages of this size");
    for (size_t i = 0; i < bytes; i++)
        found[i] = (char)(i * 31 + i / 251);
    return found;
}

#endif
