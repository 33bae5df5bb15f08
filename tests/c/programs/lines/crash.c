/* crash CASE: rank 0 crashes in one of many ways; the others wait. */
#include <assert.h>
#include <sfm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int zero;
int *volatile nowhere;

static void store(int *at, int i)
{
    at[i] = 7;
}

static int deep(int n)
{
    volatile char room[1000];
    room[0] = (char)n;
    return deep(n + 1) + room[0];
}

static void large(void)
{
    volatile double a[4000][1000];
    a[zero][zero] = 1;
}

static int less(const void *one, const void *other)
{
    (void)other;
    return *(const int *)one / zero;
}

int main(int argc, char **argv)
{
    int numbers[2] = {1, 2}, sum;
    const char *which = argc > 1 ? argv[1] : "";
    const char *rank = getenv("SFM_MPI_RANK");

    sfm_error_text(); /* whose library knows what to do in a crash */
    if (rank && strcmp(rank, "0") != 0)
        for (;;)
            pause();
    printf("before\n");
    if (!strcmp(which, "null"))
        store(nowhere, 0);
    if (!strcmp(which, "zero")) {
        sum = numbers[0] / zero;
        printf("%d\n", sum);
    }
    if (!strcmp(which, "assert"))
        assert(zero == 1);
    if (!strcmp(which, "abort"))
        abort();
    if (!strcmp(which, "library"))
        printf("%d\n", (int)strlen((char *)nowhere));
    if (!strcmp(which, "callback"))
        qsort(numbers, 2, sizeof numbers[0], less);
    if (!strcmp(which, "function"))
        ((void (*)(void))nowhere)();
    if (!strcmp(which, "recursion"))
        return deep(zero);
    if (!strcmp(which, "array"))
        large();
    if (!strcmp(which, "trap"))
        __builtin_trap();
    if (!strcmp(which, "killed"))
        kill(getpid(), SIGSEGV);
    if (!strcmp(which, "environment")) { /* a handler that reads it would crash again */
        memset(environ, 0xee, 64);
        store(nowhere, 0);
    }
    if (!strcmp(which, "own")) {
        signal(SIGSEGV, _exit);
        store(nowhere, 0);
    }
    return 0;
}
