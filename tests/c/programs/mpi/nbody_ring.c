/* Gravity of many bodies: copies of everybody's bodies travel round the ring.
 *
 * ranks: 4
 * expected:
 *   32 bodies, 3 steps
 *   momentum kept: yes
 *   as on one rank: yes
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define EACH 8
#define STEPS 3

typedef struct { double x, y, mass; } Body;
typedef struct { double x, y; } Vector;

static void pull(const Body *on, int count, const Body *by, int others, Vector *force) {
    for (int i = 0; i < count; i++)
        for (int j = 0; j < others; j++) {
            double dx = by[j].x - on[i].x, dy = by[j].y - on[i].y, d2 = dx * dx + dy * dy + 0.01;
            double f = on[i].mass * by[j].mass / (d2 * sqrt(d2));
            force[i].x += f * dx, force[i].y += f * dy;
        }
}

static void move(Body *body, Vector *speed, const Vector *force, int count) {
    for (int i = 0; i < count; i++) {
        speed[i].x += 0.001 * force[i].x / body[i].mass, speed[i].y += 0.001 * force[i].y / body[i].mass;
        body[i].x += 0.001 * speed[i].x, body[i].y += 0.001 * speed[i].y;
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = size * EACH, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    Body *all = calloc(n, sizeof *all), *got = calloc(n, sizeof *got), mine[EACH], guest[EACH];
    Vector speed[EACH] = {{0, 0}}, *speeds = calloc(n, sizeof *speeds), *forces = calloc(n, sizeof *forces);
    for (int i = 0; i < n; i++) all[i] = (Body){cos(2.4 * i) * i, sin(2.4 * i) * i, 1 + i % 3};
    memcpy(mine, all + rank * EACH, sizeof mine);
    for (int step = 0; step < STEPS; step++) {
        Vector force[EACH] = {{0, 0}};
        memcpy(guest, mine, sizeof guest);
        for (int hop = 0; hop < size; hop++) {
            pull(mine, EACH, guest, EACH, force);
            MPI_Sendrecv_replace(guest, sizeof guest, MPI_BYTE, next, hop, previous, hop,
                                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        move(mine, speed, force, EACH);
    }
    Vector momentum = {0, 0}, total;
    for (int i = 0; i < EACH; i++) momentum.x += mine[i].mass * speed[i].x, momentum.y += mine[i].mass * speed[i].y;
    MPI_Reduce(&momentum, &total, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(mine, 3 * EACH, MPI_DOUBLE, got, 3 * EACH, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double off = 0;
        for (int step = 0; step < STEPS; step++) {
            memset(forces, 0, n * sizeof *forces);
            pull(all, n, all, n, forces);
            move(all, speeds, forces, n);
        }
        for (int i = 0; i < n; i++) off = fmax(off, hypot(all[i].x - got[i].x, all[i].y - got[i].y));
        printf("%d bodies, %d steps\n", n, STEPS);
        printf("momentum kept: %s\n", hypot(total.x, total.y) < 1e-9 ? "yes" : "no");
        printf("as on one rank: %s\n", off < 1e-9 ? "yes" : "no");
    }
    free(all), free(got), free(speeds), free(forces);
    MPI_Finalize();
    return 0;
}
