/* Particles on a line that attract each other: a task for the farm, without MPI.
 *
 *     nbody PARTICLES [STEPS]
 *
 * Every particle pulls every other, to the left or to the right, by one over the square of their
 * distance. Prints the mean distance of neighbours at the end.
 * Source: Chou, Nestinger and Cheng, "Ch MPI", "Task Farming" (after Aarseth).
 */
#include <stdio.h>
#include <stdlib.h>

static const double STEP = 1e-4, SOFT = 1e-2; /* limits the force of close particles */

static void step(double *x, double *v, int n)
{
    for (int i = 0; i < n; i++) {
        double force = 0.0;
        for (int j = 0; j < n; j++) {
            double apart = x[j] - x[i], square = apart * apart + SOFT;
            force += (apart > 0.0 ? 1.0 : apart < 0.0 ? -1.0 : 0.0) / square;
        }
        v[i] += STEP * force;
    }
    for (int i = 0; i < n; i++)
        x[i] += STEP * v[i];
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 0, steps = argc > 2 ? atoi(argv[2]) : 10;
    double *x = calloc(n > 0 ? n : 1, sizeof *x), *v = calloc(n > 0 ? n : 1, sizeof *v);
    if (n < 2 || steps < 0 || x == NULL || v == NULL) {
        fprintf(stderr, "usage: nbody PARTICLES [STEPS], at least 2 particles\n");
        return 2;
    }
    for (int i = 0; i < n; i++)
        x[i] = i + 0.25 * (i % 3);
    for (int i = 0; i < steps; i++)
        step(x, v, n);
    qsort(x, n, sizeof *x, ascending);
    printf("%.9f\n", (x[n - 1] - x[0]) / (n - 1));
    free(x), free(v);
    return 0;
}
